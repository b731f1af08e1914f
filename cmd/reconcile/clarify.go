package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
)

// clarifyOptions are the flags that clarify and its subcommands share.
type clarifyOptions struct {
	issue issueFlag // if not given: all issues
	noRun bool
}

const clarifyLong = `Show the clarifications between agents, and take part in them.

Without a command: the questions that are neither resolved nor abandoned, or with --issue all threads of an issue. Every
command first updates the tree, so that overdue questions are asked again or escalated to a person; --no-run skips this.
An ID is the id of a clarification (CLR-42-001, in any case) or the name of its request.

Errors of the protocol begin with their kind: SCOPE_VIOLATION, NOT_FOUND, MAX_ROUNDS_EXCEEDED, LOCK_TIMEOUT (exit code
75) and AGENT_ERROR.`

func newClarifyCmd(a *app) *cobra.Command {
	o, asJSON := &clarifyOptions{}, false
	cmd := &cobra.Command{
		Use:   "clarify",
		Short: "Show what agents ask each other; ask, answer, resolve and escalate",
		Long:  clarifyLong,
		Example: "  reconcile clarify\n" +
			"  reconcile clarify --issue 42 -o markdown\n" +
			"  reconcile clarify ask --issue 42 --from engineer --to architect --topic Database --question \"One or two?\"\n" +
			"  reconcile clarify answer CLR-42-001 \"Two.\"",
		Args: noClarifyCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				a.global.output = formatJSON
			}
			return a.prepare(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.threads(cmd.Context(), ops.ThreadsRequest{Issue: o.issue.pointer(), NoRun: o.noRun})
		},
	}
	f := cmd.PersistentFlags()
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatMarkdown)
	f.BoolVar(&asJSON, "json", false, "the same as -o json")
	f.BoolVar(&o.noRun, "no-run", false, "do not update the tree, before or after")
	cmd.Flags().Var(&o.issue, "issue", "show the threads of the issue `N`; 0 for those about none")
	cmd.AddCommand(newClarifyShowCmd(a, o), newClarifyStaleCmd(a, o), newAskCmd(a, o), newDigestCmd(a, "stats"))
	for _, r := range ops.ReplyVerbs {
		cmd.AddCommand(newReplyCmd(a, o, r))
	}
	return cmd
}

// noClarifyCommand refuses arguments of the bare command, which are unknown subcommands.
func noClarifyCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, _, ok := clarify.ReadID(args[0]); ok {
		return badUsage("usage: reconcile clarify show %s", args[0])
	}
	names := namesOf(cmd)
	return badUsage("clarify has no command %s%s; there are %s", render.Argument(args[0]), schemas.DidYouMean(args[0], names),
		strings.Join(names, ", "))
}

func newClarifyShowCmd(a *app, o *clarifyOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one thread",
		Example: "  reconcile clarify show CLR-42-001",
		Args:    threadArguments(1, 1, "an id, as CLR-42-001"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := ops.Threads(cmd.Context(), a.env(), ops.ThreadsRequest{ID: args[0], NoRun: o.noRun})
			if err != nil {
				return err
			}
			return a.printThread(found[0])
		},
		ValidArgsFunction: a.completeThreads,
	}
}

func newClarifyStaleCmd(a *app, o *clarifyOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "stale",
		Short: "Show the questions that are overdue, do not progress, or wait for each other",
		Long: `Show the questions that got no answer in time, make no progress, or wait for each other, with the reason. Questions
that were escalated to a person for this are listed until the person decides.`,
		Example: "  reconcile clarify stale",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.threads(cmd.Context(), ops.ThreadsRequest{Troubled: true, NoRun: o.noRun})
		},
	}
}

func newAskCmd(a *app, o *clarifyOptions) *cobra.Command {
	q, issue := &ops.AskRequest{}, issueFlag{}
	cmd := &cobra.Command{
		Use:   "ask --from AGENT --to AGENT --topic TOPIC --question QUESTION",
		Short: "Ask an agent",
		Long: `Ask an agent: writes a ClarificationRequest, runs the tree, and prints the result.

Questions that are not allowed are refused, and nothing is written. Repeating a question shows the thread of the same
request. Inside a run, when an agent calls it, the command only writes the request; --from defaults to the run's agent
and --issue to its issue. The answer arrives after the run: end it, and the node runs again with the answer. A question
to an agent that has already answered the node is the next round of that thread.`,
		Example: "  reconcile clarify ask --issue 42 --from engineer --to architect --topic \"Database layer\" \\\n" +
			"    --question \"Dual layer or migrate?\" --artifact docs/adr/ADR-42.md",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if q.Question == stdinText {
				if q.Question, err = a.textOf(q.Question); err != nil {
					return err
				}
			}
			q.Issue, q.NoRun = issue.pointer(), o.noRun
			said, err := ops.Ask(cmd.Context(), a.env(), *q)
			return a.printResult(said, err)
		},
	}
	f := cmd.Flags()
	f.Var(&issue, "issue", "the issue `N` that the question is about (default: RECONCILE_ISSUE)")
	f.StringVar(&q.From, "from", "", "the asking `AGENT` (in a run: its agent)")
	f.StringVar(&q.To, "to", "", "the asked `AGENT`")
	f.StringVar(&q.Topic, "topic", "", "the subject, a `TEXT` of at most 200 characters")
	f.StringVar(&q.Question, "question", "", "the question, a `TEXT` of at most 2000 characters; - reads standard input")
	f.BoolVar(&q.NonBlocking, "non-blocking", false, "the agent can continue without the answer")
	f.StringArrayVar(&q.Artifacts, "artifact", nil, "a `FILE` of the tree that the other agent should see; may be repeated")
	f.StringVar(&q.Request, "request", "", "the `NAME` of the request (default: derived from the question)")
	for _, name := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, a.completeNamesOf(schemas.AgentKind))
	}
	return cmd
}

func newReplyCmd(a *app, o *clarifyOptions, r ops.ReplyVerb) *cobra.Command {
	from, use, least := "", r.Name+" ID TEXT", 2
	if r.DefaultText != "" {
		use, least = r.Name+" ID [TEXT]", 1
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: r.Short,
		Long: r.Short + `.

Writes a Reply to specs/replies/ and runs the tree to apply it; while another run is active, or inside a run, it only
writes. It is possible while the thread is ` + r.When() + `.
TEXT has at most 2000 characters; - reads it from standard input.`,
		Example: "  reconcile clarify " + r.Name + " CLR-42-001 \"" + exampleTexts[r.Type] + "\"",
		Args:    threadArguments(least, 2, "an id and a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := ops.ReplyRequest{Verb: r.Name, ID: args[0], From: from, NoRun: o.noRun}
			if len(args) == 2 {
				var err error
				if q.Text, err = a.textOf(args[1]); err != nil {
					return err
				}
			}
			said, err := ops.Reply(cmd.Context(), a.env(), q)
			return a.printResult(said, err)
		},
		ValidArgsFunction: a.completeThreads,
	}
	cmd.Flags().StringVar(&from, "from", "", "the `AGENT` or person that replies "+
		"(in a run: its agent; default: RECONCILE_AGENT, else the login name)")
	return cmd
}

var exampleTexts = map[string]string{
	schemas.TurnQuestion:    "And who sets the size of the pool?",
	schemas.TurnAnswer:      "Two layers, one adapter each.",
	schemas.TurnResolution:  "Clear: two layers.",
	schemas.TurnEscalation:  "This needs a budget.",
	schemas.TurnAbandonment: "The feature was dropped.",
}

// ledgerView is the -o json output for several clarifications: with an issue, in the form of its ledger.
type ledgerView struct {
	IssueNumber    *int             `json:"issueNumber,omitempty"`
	Clarifications []threads.Thread `json:"clarifications"`
}

// threads lists the open or troubled questions, or shows the threads of an issue.
func (a *app) threads(ctx context.Context, q ops.ThreadsRequest) error {
	list, err := ops.Threads(ctx, a.env(), q)
	switch output := a.global.output; {
	case err != nil:
		return err
	case output == formatJSON || output == formatYAML:
		return a.print(ledgerView{IssueNumber: q.Issue, Clarifications: list})
	case len(list) == 0 && q.Issue != nil:
		a.note("nothing was asked about issue %d", *q.Issue)
	case q.Issue == nil && output == formatTable:
		if len(list) == 0 {
			a.note("%s", map[bool]string{true: "no question is stale or stuck", false: "no open questions"}[q.Troubled])
		}
		return render.ClarificationTable(a.stdout, a.palette(), list, a.now())
	}
	for i, c := range list {
		if i > 0 {
			a.printf("\n")
		}
		if err := a.printThread(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printThread(c threads.Thread) error {
	switch a.global.output {
	case formatTable:
		return render.ClarificationThread(a.stdout, a.palette(), c)
	case formatMarkdown:
		return render.ClarificationChat(a.stdout, c)
	}
	return a.print(c)
}

// printResult prints the result of a question or a reply, and returns its exit code.
func (a *app) printResult(s *ops.ThreadResult, err error) error {
	if s == nil {
		return err
	}
	if failed := a.printOutcome(s); failed != nil {
		return failed
	}
	return cmp.Or(err, exitWith(int(s.Verdict)))
}

// printOutcome prints the thread after a question, and otherwise a line. An agent that asked inside a run and has to wait for
// the answer gets only that information.
func (a *app) printOutcome(s *ops.ThreadResult) error {
	m, asked := &s.Thread, s.Reply == nil || s.Reply.Type == schemas.TurnQuestion
	if s.Open && s.Inside && a.global.output == formatTable {
		a.printf("%s asks %s: %s\n", m.Title(), clean(m.To), s.NextInRun())
		return nil
	}
	if next := m.Next(); next != "" && !s.Seen && !s.Inside && (asked || a.global.output == formatTable) {
		a.note("%s", next)
	}
	if asked || a.global.output != formatTable {
		return a.printThread(*m)
	}
	a.printf("%s\n", clean(s.Line()))
	return nil
}

// threadArguments is [arguments] for commands whose first argument names a clarification. A word that is neither an id
// nor a name is refused before anything is read or run.
func threadArguments(least, most int, words string) cobra.PositionalArgs {
	number := arguments(least, most, words)
	return func(cmd *cobra.Command, args []string) error {
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], guard)
		}
		if len(args) > most && most > 1 {
			return badUsage("%s takes one text, and here are %d words: put the text in quotes; usage: %s", cmd.CommandPath(),
				len(args)-1, cmd.UseLine())
		}
		return number(cmd, args)
	}
}

// guard is the prefix of an argument that only looks like a flag. No argument of a process can contain a zero
// byte.
const guard = "\x00"

// guardTexts marks, for the commands with the text of a reply, arguments that begin with a hyphen and contain a space,
// since no flag's name does. [threadArguments] removes the mark.
func guardTexts(args []string) []string {
	i := slices.Index(args, "clarify") + 1
	if i == 0 {
		return args
	}
	j := slices.IndexFunc(args[i:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	if j < 0 || !slices.ContainsFunc(ops.ReplyVerbs, func(r ops.ReplyVerb) bool { return r.Name == args[i+j] }) {
		return args
	}
	out := slices.Clone(args)
	for k := i + j + 1; k < len(out) && out[k] != "--"; k++ {
		if name, _, _ := strings.Cut(out[k], "="); strings.HasPrefix(name, "-") && strings.ContainsFunc(name, unicode.IsSpace) {
			out[k] = guard + out[k]
		}
	}
	return out
}

// digestText is another name of the table of digest.
const digestText = "text"

// newDigestCmd returns the command under one of two names: the one of the AgentX seed, and the one below clarify.
func newDigestCmd(a *app, name string) *cobra.Command {
	since := ""
	cmd := &cobra.Command{
		Use:   name,
		Short: "Summarize the clarifications of a period: counts, results, topics, and who asks",
		Long: `Summarize the clarifications that were created in a period, from the ledgers: their number and states, how many were
resolved without a human, the number of rounds, the topics, and the agents that ask and are asked most. Resolved without
a human means never escalated, and neither answered nor resolved by a person, as a share of all that were resolved or
are escalated.`,
		Example: "  reconcile clarify stats\n" +
			"  reconcile clarify stats --since 24h -o markdown\n" +
			"  reconcile clarify stats --since 2026-02-01 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := ops.ParseSince(since, a.now())
			if err != nil {
				return err
			}
			d, err := ops.Digest(cmd.Context(), a.env(), ops.DigestRequest{Since: at})
			switch {
			case err == nil && a.global.output == formatMarkdown:
				return render.DigestMarkdown(a.stdout, d)
			case err == nil && a.global.output == digestText:
				return render.DigestText(a.stdout, a.palette(), d)
			}
			return a.result(d, err, func() error { return render.DigestText(a.stdout, a.palette(), d) })
		},
	}
	cmd.Flags().StringVar(&since, "since", "7d", "start of the period, a `TIME`: 7d, 2w, 24h, 2026-02-01, an RFC 3339 time, or all")
	a.outputFlag(cmd, cmd.Flags(), formatTable, digestText, formatMarkdown, formatJSON, formatYAML)
	return cmd
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// hookOptions are the flags of the hooks.
type hookOptions struct {
	agent string
	issue issueFlag
	note  string
	noRun bool
	// Of an end: the conversation, and the session that it was.
	transcript string
	session    string
}

func newHookCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook start|finish",
		Short: "Say that an agent takes up work outside of reconcile, or ends it",
		Long: `Say that an agent takes up work outside of reconcile, or ends it: a chat, an editor, a person. The tree is run
once, and what the agent must know is printed: what blocks it, answers to its questions, questions that wait for it, and,
at the start, what is remembered of earlier work. An end gives back what the agent took for the issue with "reconcile
ready --claim", and keeps what was learned.`,
		Example: "  reconcile hook start --agent engineer --issue 42",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badUsage("reconcile hook needs start or finish; for example: %s", strings.TrimSpace(cmd.Example))
			}
			return badUsage("there is no hook %q%s", args[0], didYouMean(args[0], []string{"start", "finish"}))
		},
	}
	cmd.AddCommand(
		newHookPhaseCmd(a, "start", "Say that an agent takes up work on an issue", schemas.OutcomeStarted),
		newHookPhaseCmd(a, "finish", "Say that an agent has ended its work on an issue", schemas.OutcomeDone),
	)
	return cmd
}

func newHookPhaseCmd(a *app, name, short, outcome string) *cobra.Command {
	o := &hookOptions{}
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  reconcile hook " + name + " --agent engineer --issue 42",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.hook(cmd.Context(), outcome, *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT` that works")
	f.Var(&o.issue, "issue", "the issue that the work is about; 0 for none")
	f.StringVar(&o.note, "note", "", "a remark for the record, a `TEXT`")
	f.BoolVar(&o.noRun, "no-run", false, "only write the record; the next run takes it up")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	if outcome == schemas.OutcomeDone {
		o.bindEnd(cmd)
	}
	return cmd
}

// bindEnd adds the flags that only an end has.
func (o *hookOptions) bindEnd(cmd *cobra.Command) {
	cmd.Long = `Say that an agent has ended its work on an issue, and keep what it learned: --transcript names the conversation, as
JSON lines with role and content, or as Claude Code, Codex, Copilot and Gemini write it; - is standard input. Standard
input may also be what Claude Code tells its Stop and SessionEnd hooks, which names the file and the session. Secrets and
everything between <private> and </private> are removed before anything is written. A file that a program names and that is
no conversation is refused. While another process holds the memory's locks, what was learned is kept in specs/, the next run
takes it into the memory, and the exit code is 75.`
	cmd.Example += "\n  reconcile hook finish --agent engineer --issue 42 --transcript session.jsonl" +
		"\n  reconcile hook finish --agent engineer --issue 42 --transcript -   # as the command of a SessionEnd hook"
	f := cmd.Flags()
	f.StringVar(&o.transcript, "transcript", "", "the conversation of the session, a `FILE` or - for standard input")
	f.StringVar(&o.session, "session", "", "the `SESSION` of the work, one of the tree or of the agent's program")
}

// hookReport is what a hook prints for machines.
type hookReport struct {
	Agent string `json:"agent"`
	Issue int    `json:"issue"`
	// Outcome is Started or Done, Record the key of the record.
	Outcome string `json:"outcome"`
	Record  string `json:"record"`
	// Memory is what is remembered of earlier work, at a start: the section "## Memory Recall", or "".
	Memory string `json:"memory,omitempty"`
	// Learned is what an end kept; absent if no conversation was given.
	Learned *ops.Learned `json:"learned,omitempty"`
	controllers.Brief
}

func (a *app) hook(ctx context.Context, outcome string, o hookOptions) error {
	var err error
	if o.agent, err = a.caller().Worker(o.agent); err != nil {
		return err
	}
	if err := o.check(outcome); err != nil {
		return err
	}
	process.TuneGC(a.getenv, process.GCLatency)
	var conversation *ops.Conversation
	if o.transcript != "" {
		if conversation, err = ops.ReadConversation(a.textFrom(o.transcript), o.session); err != nil {
			return err
		}
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	note := a.discreet("--note", o.note)
	report := hookReport{Agent: o.agent, Issue: o.issue.number, Outcome: outcome}
	if outcome == schemas.OutcomeDone { // before the work counts as done: what was learned is not to be lost
		if _, err := ops.FindAgent(t, o.agent); err != nil {
			return err
		}
		if report.Learned, err = a.env().CaptureSession(ctx, s, o.agent, o.issue.number, conversation); err != nil {
			return err
		}
	}
	var since schemas.Time
	var left []schemas.Clarification
	t, err = a.recordHook(ctx, s, t, func(t *state.Tree) (*schemas.Run, error) {
		agent, err := ops.FindAgent(t, o.agent)
		if err != nil {
			return nil, err
		}
		if last := controllers.LastHook(agent); last != nil {
			since = last.FinishedAt
		}
		if outcome == schemas.OutcomeStarted {
			left = controllers.LeftBehind(t, o.agent, o.issue.number)
		}
		r := controllers.NewHook(agent, outcome, o.issue.number, a.now())
		r.Message = note
		report.Record = r.Key
		return &r, nil
	})
	if err != nil {
		return err
	}
	t, whole, err := a.monitored(ctx, s, t, o.noRun)
	if err != nil {
		return err
	}
	if l := report.Learned; l != nil && l.Held && whole {
		a.env().Settled(ctx, s, o.issue.number, l)
	}
	report.Brief = controllers.NewBrief(t, o.agent, o.issue.number, since, left)
	if outcome == schemas.OutcomeStarted {
		report.Memory = a.env().Remind(ctx, s, t, o.agent, o.issue.number)
	}
	err = a.printHook(report)
	if l := report.Learned; l != nil && l.Held { // it is kept, and not yet in the memory
		err = errors.Join(err, exitWith(exitBusy))
	}
	return err
}

func (o *hookOptions) check(outcome string) error {
	word := "start"
	if outcome == schemas.OutcomeDone {
		word = "finish"
	}
	if err := specs.CheckSecret("--session", o.session); err != nil {
		return err
	}
	const most = 1000
	switch {
	case o.agent == "" || !o.issue.given:
		return badUsage("reconcile hook %s needs --agent and --issue; for example: "+
			"reconcile hook %[1]s --agent engineer --issue 42", word)
	case len(o.note) > most:
		return badUsage("--note has %d bytes, at most %d are allowed", len(o.note), most)
	case o.session != "" && schemas.CheckName(o.session) != nil:
		return badUsage("--session %q: %v", o.session, schemas.CheckName(o.session))
	case o.session != "" && o.transcript == "":
		return badUsage("--session says whose conversation --transcript is, and there is none; add --transcript FILE")
	}
	return nil
}

func (a *app) printHook(r hookReport) error {
	if r.Outcome == schemas.OutcomeDone {
		for _, c := range r.Blocked {
			a.note("warning: %s ends its work while its blocking question %s is open", r.Agent, c.ID)
		}
	}
	if a.global.output != formatTable {
		return a.print(r)
	}
	_, err := fmt.Fprint(a.stdout, render.Text(hookText(r)))
	return err
}

// hookText is what the agent must know, a paragraph for each question.
func hookText(r hookReport) string {
	var b strings.Builder
	about := "no issue"
	if r.Issue > 0 {
		about = fmt.Sprintf("issue %d", r.Issue)
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", r.Agent, strings.ToLower(r.Outcome), about)
	for i := range r.Blocked {
		fmt.Fprintf(&b, "\n%s\n", controllers.BlockedLine(&r.Blocked[i]))
		turnText(&b, "Q", lastTurn(&r.Blocked[i], schemas.TurnQuestion))
	}
	for i := range r.Abandoned {
		c := &r.Abandoned[i]
		fmt.Fprintf(&b, "\nABANDONED: Clarification %s: %s\n", c.ID, c.Topic)
		turnText(&b, "Q", lastTurn(c, schemas.TurnQuestion))
		fmt.Fprintf(&b, "  It was asked about another issue, and nobody waits for the answer any more. Where it still matters, ask "+
			"again with \"reconcile clarify ask\".\n")
	}
	for i := range r.Answered {
		c := &r.Answered[i]
		fmt.Fprintf(&b, "\n%s %s: %s\n", c.ID, c.Status, c.Topic)
		turnText(&b, "Q", lastTurn(c, schemas.TurnQuestion))
		turnText(&b, "A", lastTurn(c, schemas.TurnAnswer, schemas.TurnResolution))
	}
	for i := range r.Asked {
		c := &r.Asked[i]
		fmt.Fprintf(&b, "\n%s asked by %s: %s\n", c.ID, c.From, c.Topic)
		turnText(&b, "Q", lastTurn(c, schemas.TurnQuestion))
		fmt.Fprintf(&b, "  reconcile clarify answer %s TEXT\n", c.ID)
	}
	if r.Memory != "" {
		b.WriteString("\n" + strings.TrimRight(r.Memory, "\n") + "\n")
	}
	if l := r.Learned; l != nil && l.Path != "" {
		b.WriteString("\n" + l.String() + "\n")
	}
	return b.String()
}

// lastTurn is the latest turn of one of the types; nil when there is none.
func lastTurn(c *schemas.Clarification, types ...string) *schemas.ClarificationTurn {
	for i := range slices.Backward(c.Thread) {
		if slices.Contains(types, c.Thread[i].Type) {
			return &c.Thread[i]
		}
	}
	return nil
}

// turnText writes what was said, indented, so that it cannot pass for a line of the report.
func turnText(b *strings.Builder, mark string, t *schemas.ClarificationTurn) {
	if t == nil {
		return
	}
	body := strings.Join(strings.Split(strings.TrimSpace(t.Body), "\n"), "\n     ")
	fmt.Fprintf(b, "  %s: %s\n", mark, body)
}

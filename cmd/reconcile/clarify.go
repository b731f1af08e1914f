package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/state"
)

// clarifyOptions are the flags that clarify and its commands share.
type clarifyOptions struct {
	issue issueFlag // not given: of all
	json  bool
	noRun bool
}

const clarifyLong = `Show what agents ask each other, and take part in it.

Without a command: the questions that are neither resolved nor abandoned, or with --issue all threads of an issue. Every
command first brings the tree up to date, so that what is overdue is asked again or handed to a person; --no-run leaves
that out. An ID is that of a clarification (CLR-42-001, in any case) or the name of its request.

Errors of the protocol begin with their kind: SCOPE_VIOLATION, NOT_FOUND, MAX_ROUNDS_EXCEEDED, LOCK_TIMEOUT (exit code
75) and AGENT_ERROR.`

func newClarifyCmd(a *app) *cobra.Command {
	o := &clarifyOptions{}
	cmd := &cobra.Command{
		Use:   "clarify",
		Short: "Show what agents ask each other; ask, answer, resolve and escalate",
		Long:  clarifyLong,
		Example: "  reconcile clarify\n" +
			"  reconcile clarify --issue 42 -o markdown\n" +
			"  reconcile clarify ask --issue 42 --from engineer --to architect --topic Database --question \"One or two?\"\n" +
			"  reconcile clarify answer CLR-42-001 \"Two.\"",
		Args:              noClarifyCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.clarifyFlags(cmd, o) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.clarify(cmd.Context(), *o) },
	}
	f := cmd.PersistentFlags()
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatMarkdown)
	f.BoolVar(&o.json, "json", false, "the same as -o json")
	f.BoolVar(&o.noRun, "no-run", false, "do not bring the tree up to date, before or after")
	cmd.Flags().Var(&o.issue, "issue", "show the threads of the issue `N`; 0 for those about none")
	cmd.AddCommand(newClarifyShowCmd(a, o), newClarifyStaleCmd(a, o), newAskCmd(a, o))
	for _, r := range replyCommands {
		cmd.AddCommand(newReplyCmd(a, o, r))
	}
	return cmd
}

// noClarifyCommand refuses arguments of the bare command: they are meant as a command that does not exist.
func noClarifyCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if _, _, ok := clarify.ReadID(args[0]); ok {
		return badUsage("usage: reconcile clarify show %s", args[0])
	}
	return badUsage("clarify has no command %s%s; there are %s", ops.ArgumentName(args[0]), didYouMean(args[0], names),
		strings.Join(names, ", "))
}

func (a *app) clarifyFlags(cmd *cobra.Command, o *clarifyOptions) error {
	if o.json {
		a.global.output = formatJSON
	}
	return a.checkFlags()
}

func newClarifyShowCmd(a *app, o *clarifyOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one thread",
		Example: "  reconcile clarify show CLR-42-001",
		Args:    matterArguments(1, 1, "an id, as CLR-42-001"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.clarifyShow(cmd.Context(), args[0], *o)
		},
		ValidArgsFunction: a.completeMatters,
	}
}

func newClarifyStaleCmd(a *app, o *clarifyOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "stale",
		Short: "Show the questions that are overdue, go in circles or wait for each other",
		Long: `Show the questions that got no answer in time, go in circles or wait for each other, with the reason. Those
that were handed to a person for that are listed until the person has decided.`,
		Example: "  reconcile clarify stale",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.clarifyStale(cmd.Context(), *o) },
	}
}

// clarify lists the active questions, or shows the threads of an issue.
func (a *app) clarify(ctx context.Context, o clarifyOptions) error {
	t, err := a.current(ctx, o.noRun)
	if err != nil {
		return err
	}
	if o.issue.given {
		n := o.issue.number
		return a.printThreads(ledgerView{IssueNumber: &n, Clarifications: controllers.Threads(t, n, false)})
	}
	list := controllers.Threads(t, -1, true)
	if a.global.output != formatTable {
		return a.printThreads(ledgerView{Clarifications: list})
	}
	if len(list) == 0 {
		a.note("no open questions")
	}
	return render.ClarificationTable(a.stdout, a.palette(), list, a.now())
}

func (a *app) clarifyShow(ctx context.Context, word string, o clarifyOptions) error {
	t, err := a.current(ctx, o.noRun)
	if err != nil {
		return err
	}
	m, err := ops.FindThread(t, word)
	if err != nil {
		return err
	}
	return a.printThread(m)
}

func (a *app) clarifyStale(ctx context.Context, o clarifyOptions) error {
	t, err := a.current(ctx, o.noRun)
	if err != nil {
		return err
	}
	list := controllers.Troubled(t, controllers.Threads(t, -1, true), a.now())
	if a.global.output != formatTable {
		return a.printThreads(ledgerView{Clarifications: list})
	}
	if len(list) == 0 {
		a.note("no question is stale or stuck")
	}
	return render.ClarificationTable(a.stdout, a.palette(), list, a.now())
}

// current brings the tree up to date, where that is wanted and possible now, and returns it.
func (a *app) current(ctx context.Context, noRun bool) (*state.Tree, error) {
	s, t, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return a.monitor(ctx, s, t, noRun)
}

// ledgerView is several clarifications as -o json prints them: with an issue, in the form of its ledger.
type ledgerView struct {
	IssueNumber    *int                 `json:"issueNumber,omitempty"`
	Clarifications []controllers.Thread `json:"clarifications"`
}

// printThreads prints threads one after the other; for programs, as one object.
func (a *app) printThreads(v ledgerView) error {
	if a.global.output != formatTable && a.global.output != formatMarkdown {
		return a.print(v)
	}
	if len(v.Clarifications) == 0 && v.IssueNumber != nil {
		a.note("nothing was asked about issue %d", *v.IssueNumber)
	}
	for i, c := range v.Clarifications {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := a.printThread(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printThread(c controllers.Thread) error {
	switch a.global.output {
	case formatTable:
		return render.ClarificationThread(a.stdout, a.palette(), c)
	case formatMarkdown:
		return render.ClarificationChat(a.stdout, c)
	}
	return a.print(c)
}

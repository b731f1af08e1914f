package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/budget"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// budgetOptions are the flags of budget.
type budgetOptions struct {
	agent        string
	issue        issueFlag
	conversation string
	failOn       int
}

func newBudgetCmd(a *app) *cobra.Command {
	o := &budgetOptions{}
	cmd := &cobra.Command{
		Use:   "budget --agent AGENT",
		Short: "Show what fills an agent's context, against the window of its model",
		Long: `Show what fills an agent's context: instructions, skills, the definition of the agent, templates, the memory that
it would be given now, and the conversation, each in tokens, against the agent's contextWindow.

All files that an agent program may read by itself are counted, a file that has several names once. From 70 % of the
window on compaction is recommended, from 90 % on the level is critical. Tokens are counted with o200k_base, offline.`,
		Example: "  reconcile budget --agent engineer\n" +
			"  reconcile budget --agent engineer --issue 29 --conversation session.jsonl\n" +
			"  reconcile budget --agent engineer --fail-on 90 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.budget(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT`")
	f.Var(&o.issue, "issue", "the issue of the work that memory is recalled for")
	f.StringVar(&o.conversation, "conversation", "",
		"a transcript, or any `FILE` (- for standard input), as the conversation (default: the log of the agent's last run)")
	f.IntVar(&o.failOn, "fail-on", 0, "end with exit code 1 from `PERCENT` of the window on")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (o *budgetOptions) check() error {
	switch {
	case o.agent == "":
		return badUsage("reconcile budget needs --agent; for example: reconcile budget --agent engineer")
	case schemas.CheckName(o.agent) != nil:
		return badUsage("--agent %q: %v", o.agent, schemas.CheckName(o.agent))
	case o.failOn < 0 || o.failOn > 100:
		return badUsage("--fail-on %d: write a share of the window in percent, 1 to 100", o.failOn)
	}
	return nil
}

func (a *app) budget(ctx context.Context, o budgetOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if e := t.Entry(ops.AgentRef(o.agent)); e != nil && e.Broken() {
		return a.invalid(e)
	}
	b, err := a.newBudget(ctx, s, t, o)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		err = a.print(b)
	} else {
		err = render.BudgetText(a.stdout, a.palette(), b)
	}
	if err == nil && o.failOn > 0 && b.Percent >= float64(o.failOn) {
		return fmt.Errorf("the context of %s is filled to %.1f %%, and --fail-on %d was asked for: shorten what it is "+
			"given, or give the agent a larger contextWindow", o.agent, b.Percent, o.failOn)
	}
	return err
}

// invalid refuses to go by an object that cannot be used: what it says may not be what was meant.
func (a *app) invalid(e *state.Entry) error {
	for _, p := range e.Problems {
		fmt.Fprintln(a.stderr, "reconcile: "+clean(p.Error()))
	}
	fmt.Fprintf(a.stderr, "reconcile: %s cannot be used as it is, so that nothing can be said of its context\n", e.Ref)
	return exitWith(exitInvalid)
}

// newBudget collects what fills the context.
func (a *app) newBudget(ctx context.Context, s *state.Store, t *state.Tree, o budgetOptions) (render.Budget, error) {
	r := budget.Request{Agent: o.agent, Issue: o.issue.number}
	if o.conversation != "" {
		r.Conversation = &budget.Text{Name: o.conversation, Read: a.textFrom(o.conversation).Read}
	}
	m := a.env().Memory(s)
	b, err := budget.Count(ctx, s, t, m, r)
	if errors.Is(err, budget.ErrNoAgent) {
		err = ops.NotFound(t, ops.AgentRef(o.agent))
	}
	return b, errors.Join(err, m.Close())
}

package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newBudgetCmd(a *app) *cobra.Command {
	q, issue, conversation := &ops.BudgetRequest{}, issueFlag{}, ""
	cmd := &cobra.Command{
		Use:   "budget --agent AGENT",
		Short: "Show the content of an agent's context in tokens, against the window of its model",
		Long: `Show the content of an agent's context in tokens: instructions, skills, the agent's definition, templates, the memory
that it would recall now, and the conversation, compared with the agent's contextWindow.

All files that agent programs read on their own are counted; a file with several names counts once. From 70 % of the
window compaction is recommended, from 90 % the level is critical. Tokens are counted with o200k_base, offline.`,
		Example: "  reconcile budget --agent engineer\n" +
			"  reconcile budget --agent engineer --issue 29 --conversation session.jsonl\n" +
			"  reconcile budget --agent engineer --fail-on 90 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Issue = issue.number; conversation != "" {
				text := a.textFrom(conversation)
				q.Conversation = &text
			}
			return a.budget(cmd.Context(), *q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "the `AGENT`")
	f.Var(&issue, "issue", "the issue of the work that memory is recalled for")
	f.StringVar(&conversation, "conversation", "",
		"a transcript, or any `FILE` (- for standard input), as the conversation (default: the log of the agent's last run)")
	f.IntVar(&q.FailOn, "fail-on", 0, "exit with code 1 from `PERCENT` of the window")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) budget(ctx context.Context, q ops.BudgetRequest) error {
	b, err := ops.Budget(ctx, a.env(), q)
	if b.Agent == "" {
		return err
	}
	if a.global.output != formatTable {
		return cmp.Or(a.print(b), err)
	}
	return cmp.Or(render.BudgetText(a.stdout, a.palette(), b), err)
}

package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newStateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Show the activity of the agents: who works, asks, answers or waits",
		Long: `Show the activity of the agents from state/agent-status.json: who works on which issue, who waits for an answer, and who
answers. It only reads: nothing runs, and no question becomes stale.

-o json and yaml print the content of the file.`,
		Example: "  reconcile state\n  reconcile state -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.agentState(cmd.Context()) },
	}
}

func (a *app) agentState(ctx context.Context) error {
	r, err := ops.Agents(ctx, a.env())
	return a.result(r.File, err, func() error {
		if len(r.Agents) == 0 {
			a.note("no agents")
		}
		return render.AgentTable(a.stdout, a.palette(), r.Agents, a.now())
	})
}

func newPromptCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompt KIND/NAME NODE",
		Short: "Print what the agent of a node would be told now, with the tokens of each part",
		Long: `Print what the agent of a node would be told if the node ran now, part by part, with the tokens of each: who it is, its
instructions, the task, the work that it belongs to, when it is done, results and answers, what failed before, files, rules,
whom it may ask and how, how to report, and the recalled memory. Nothing is run and nothing is changed.

Results of needs are left out, with a note, where the prompt would exceed the agent's promptTokens. Tokens are counted with
o200k_base, offline.`,
		Example: "  reconcile prompt dag/checks review\n  reconcile prompt dag checks review -o json",
		Args:    arguments(1, 3, "a DAG and a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withRef(args)
			q := ops.PromptRequest{DAG: args[0]}
			switch len(args) {
			case 1:
			case 2:
				q.Node = args[1]
			default:
				return badUsage("prompt takes KIND/NAME and a NODE, not %q", args[2])
			}
			return a.prompt(cmd.Context(), q)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
	return cmd
}

func (a *app) prompt(ctx context.Context, q ops.PromptRequest) error {
	r, err := ops.Prompt(ctx, a.env(), q)
	return a.result(r, err, func() error {
		if err := render.Prompt(a.stdout, a.palette(), r.Parts); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "%s in all; at most %s without artifacts and memory\n",
			render.GroupedPlural(r.Tokens, "token"), render.Grouped(r.Limit))
		return err
	})
}

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
				text := a.textFrom(cmd.Context(), conversation)
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

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

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
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(r)
	}
	parts := make([]render.PromptPart, len(r.Parts))
	for i, p := range r.Parts {
		parts[i] = render.PromptPart(p)
	}
	if err := render.Prompt(a.stdout, a.palette(), parts); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s in all; at most %s without artifacts and memory\n", render.GroupedPlural(r.Tokens, "token"), render.Grouped(r.Limit))
	return err
}

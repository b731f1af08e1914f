package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

func newStartCmd(a *app) *cobra.Command {
	q, file := ops.StartRequest{}, ""
	var params []string
	cmd := &cobra.Command{
		Use:   "start WORKFLOW --issue N",
		Short: "Start a workflow for an issue",
		Long: `Start a workflow for an issue. Each step becomes a node of a new DAG in a new session, both named for the workflow and the issue,
such as feature-42. A start for an issue whose run has not ended joins that run, unless it asks for other values of parameters or
other steps; after its end, another start makes feature-42-2.

The text of the issue is that of a file, whose first heading is the title, that of an earlier run, or that of the repository on GitHub
that the settings name (github.repo): then a run with a token reads it once. It is kept in the session. Without any the start is refused.

The command writes an Action to specs/actions/ and then runs the tree once to apply it; while another run is active, that run
applies it. Anyone can commit such an Action. In a run the command is refused: an agent starts no workflows.`,
		Example: "  reconcile start feature --issue 42\n" +
			"  reconcile start feature --issue 42 --issue-file issue.md --skip design\n" +
			"  reconcile start feature --issue-file idea.md --no-run",
		Args: arguments(1, 1, "a workflow"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Workflow = args[0]; file != "" {
				if q.Text, err = a.textIn("--issue-file", file); err != nil {
					return err
				}
			}
			if q.Params, err = paramValues(params); err != nil {
				return err
			}
			return a.start(cmd.Context(), q)
		},
		ValidArgsFunction: a.completeNamesOf(schemas.WorkflowKind),
	}
	f := cmd.Flags()
	f.IntVar(&q.Issue, "issue", 0, "the number `N` of the issue")
	f.StringVar(&file, "issue-file", "", "read the issue from a `FILE`, with its title as the first heading; - is standard input")
	f.StringSliceVar(&q.Skip, "skip", nil, "leave out the optional `STEP`")
	f.StringArrayVar(&params, "param", nil, "give a parameter of the workflow a value, as `NAME=VALUE`")
	f.StringVar(&q.Reason, "reason", "", "the `REASON`, for the record")
	f.StringVar(&q.By, "by", "", "the `NAME` of the acting person (default: the user's login name)")
	f.BoolVar(&q.NoRun, "no-run", false, "only write the action; the next run applies it")
	return cmd
}

// paramValues reads the values of parameters.
func paramValues(given []string) (map[string]any, error) {
	var out map[string]any
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, badUsage("--param %s: write NAME=VALUE", pair)
		}
		if out == nil {
			out = map[string]any{}
		}
		if _, twice := out[name]; twice {
			return nil, badUsage("--param %s: the parameter %s has two values", pair, name)
		}
		out[name] = value
	}
	return out, nil
}

func (a *app) start(ctx context.Context, q ops.StartRequest) error {
	r, err := ops.Start(ctx, a.env(), q)
	switch {
	case r.Path == "":
		return err
	case r.DAG.Name == "" && r.Run == nil:
		a.note("the next run of the tree starts it")
	case r.New:
		a.note("started %s", r.DAG)
	case r.DAG.Name != "":
		a.note("joined %s, which has not ended", r.DAG)
	}
	if err == nil && r.Run != nil {
		err = a.ended(*r.Run)
	}
	return err
}

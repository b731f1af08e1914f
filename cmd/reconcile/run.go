package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
)

// bindRun binds the flags of run, which are also those of the bare command.
func bindRun(q *ops.RunRequest, f *pflag.FlagSet) {
	f.BoolVar(&q.Watch, "watch", false, "keep running, and reconcile when a file changes or a timer expires")
	f.BoolVar(&q.Commit, "commit", false, "commit the written files (also: git.commit in reconcile.yaml)")
	f.BoolVar(&q.Push, "push", false, "share the branch: commit, push, pull commits of others (also: git.push)")
}

func newRunCmd(a *app) *cobra.Command {
	q := &ops.RunRequest{}
	cmd := &cobra.Command{
		Use:   "run [dag/NAME [NODE]]",
		Short: "Do the missing work until nothing is left to do (also without a command)",
		Long: `Do the missing work until nothing is left to do: of the whole tree, of one DAG, or of one node with its dependencies. Nodes
that have succeeded do not run again. Questions of these nodes are asked and answered, too; nothing else starts.`,
		Example: "  reconcile run dag/deploy --param env=prod # with that value, which its spec keeps\n" +
			"  reconcile run                         # once, to the fixed point\n" +
			"  reconcile run --watch                 # and again whenever something changes\n" +
			"  reconcile run dag/checks unit_tests   # that node and its dependencies",
		Args: arguments(0, 3, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args = withRef(args); {
			case len(args) > 2:
				return badUsage("run takes one DAG and one NODE, not %q", args[2])
			case len(args) == 2:
				q.Node = args[1]
				fallthrough
			case len(args) == 1:
				q.Object = args[0]
			}
			return a.run(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
	bindRun(q, cmd.Flags())
	cmd.Flags().StringArrayVar(&q.Params, "param", nil, "write a value of a parameter into the DAG's spec first, as `NAME=VALUE` (repeatable)")
	return cmd
}

func (a *app) run(ctx context.Context, q ops.RunRequest) error {
	r, err := ops.Run(ctx, a.env(), q)
	if err != nil {
		return err
	}
	return a.ended(r)
}

// ended reports a run, and returns its exit code: the objects, or if there are many those that are not ready, and a summary. A run
// without changes lists only failures.
func (a *app) ended(r ops.RunResult) error {
	err := a.result(r, nil, func() error {
		if err := a.problems(r.Problems()); err != nil {
			return err
		}
		rows, total := r.Listed(a.global.quiet)
		if err := render.StandingTable(a.stdout, a.palette(), rows, total); err != nil || a.global.quiet {
			return err
		}
		if r.Total == 0 {
			a.note("%s", a.noObjects())
			return nil
		}
		a.printWrapped(r.Summary())
		a.waits(r.Waits)
		return nil
	})
	return cmp.Or(err, r.Busy, exitWith(int(r.Verdict)))
}

// acted is the end of an operation that may have run the tree.
func (a *app) acted(r *ops.RunResult, err error) error {
	if err != nil || r == nil {
		return err
	}
	return a.ended(*r)
}

// waits prints the actions that people have to take.
func (a *app) waits(lines []string) {
	const most = 10
	for _, line := range lines[:min(most, len(lines))] {
		a.printWrapped(render.Line(line))
	}
	if len(lines) > most {
		a.printf("… and %d more; \"reconcile ready\" lists them\n", len(lines)-most)
	}
}

// noObjects suggests what to do in a tree without objects.
func (a *app) noObjects() string {
	return fmt.Sprintf("no objects in %s yet; \"reconcile init --example\" creates an example", a.global.dir)
}

// problems prints the problems of files, before a result. Of many it prints the first.
func (a *app) problems(list []schemas.Problem) error {
	if len(list) == 0 {
		return nil
	}
	err := render.FirstProblems(a.stdout, a.palette(), list, readiness.MostRows)
	a.printf("\n")
	return err
}

// printWrapped prints a sentence, wrapped at words on a terminal.
func (a *app) printWrapped(text string) {
	lines := []string{text}
	if width := a.palette().Width; width > 0 {
		lines = render.Wrap(text, width)
	}
	a.printf("%s\n", strings.Join(lines, "\n"))
}

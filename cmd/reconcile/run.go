package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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

// reportRun prints the result of a run: the objects, or if there are many those that are not ready, and a summary. A run
// without changes lists only failures.
func (a *app) reportRun(r ops.RunResult) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	if err := a.problems(r.Problems()); err != nil {
		return err
	}
	rows, total := a.listed(&r)
	if err := render.StandingTable(a.stdout, a.palette(), rows[:min(readiness.MostRows, len(rows))], total); err != nil {
		return err
	}
	if a.global.quiet {
		return nil
	}
	if r.Total == 0 {
		a.note("%s", a.noObjects())
		return nil
	}
	if err := a.printWrapped(summary(&r)); err != nil {
		return err
	}
	return a.waits(r.Waits)
}

// ended reports a run, and returns its exit code.
func (a *app) ended(r ops.RunResult) error {
	if err := a.reportRun(r); err != nil {
		return err
	}
	if r.Busy != nil {
		return r.Busy
	}
	return exitWith(int(r.Verdict))
}

// waits prints the actions that people have to take.
func (a *app) waits(lines []string) error {
	const most = 10
	for _, line := range lines[:min(most, len(lines))] {
		if err := a.printWrapped(render.Line(line)); err != nil {
			return err
		}
	}
	if len(lines) <= most {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "… and %d more; \"reconcile ready\" lists them\n", len(lines)-most)
	return err
}

// noObjects suggests what to do in a tree without objects.
func (a *app) noObjects() string {
	return fmt.Sprintf("no objects in %s yet; \"reconcile init --example\" creates an example", a.global.dir)
}

// listed selects the objects that a run lists, the first of how many.
func (a *app) listed(r *ops.RunResult) (rows []readiness.Row, total int) {
	if a.global.quiet {
		rows = slices.DeleteFunc(r.Unready, func(row readiness.Row) bool { return row.Waits })
		return rows, r.Standing.Failed + r.Standing.Invalid
	}
	if !r.HasTree() || r.Unchanged || r.Total > readiness.MostRows {
		return r.Unready, r.Standing.Unready()
	}
	for e := range r.Entries() {
		if readiness.Standing(e).Total() == 1 && (e.HasStatus() || readiness.ExpectsStatus(e)) && !spent(e) {
			rows = append(rows, readiness.RowOf(e))
		}
	}
	return rows, len(rows)
}

// spent reports whether an object is an applied action, which the summary after a run leaves out; "get actions" lists it.
func spent(e *state.Entry) bool {
	return e.Kind == schemas.ActionKind.Name && readiness.Standing(e).Ready == 1
}

// warnedOnce leaves of the same warning about files of one kind the first, which says of how many others it is true: an agent without a spec,
// say, has as many captures as it had runs.
func warnedOnce(list []schemas.Problem) (out []schemas.Problem) {
	type warning struct{ kind, code, message string }
	files, first := map[warning]map[string]bool{}, map[warning]int{}
	for _, p := range list {
		w := warning{p.Ref.Kind, p.Code, p.Message}
		if p.Severity == schemas.Warning {
			if files[w] == nil {
				files[w], first[w] = map[string]bool{}, len(out)
			} else if files[w][p.Path] = true; p.Path != out[first[w]].Path {
				continue
			}
		}
		out = append(out, p)
	}
	for w, others := range files {
		p := &out[first[w]]
		if delete(others, p.Path); len(others) > 0 {
			p.Message += fmt.Sprintf(", also in %s", schemas.Count(len(others), "other file"))
		}
	}
	return out
}

// problems prints the problems of files. Of many it prints the first.
func (a *app) problems(list []schemas.Problem) error {
	if len(list) == 0 {
		return nil
	}
	more := ""
	list = warnedOnce(list)
	if len(list) > readiness.MostRows {
		more = fmt.Sprintf("… and %d more; \"reconcile validate\" lists them\n", len(list)-readiness.MostRows)
		list = list[:readiness.MostRows]
	}
	if err := render.Problems(a.stdout, a.palette(), list); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout, more)
	return err
}

// printWrapped prints a sentence, wrapped at words on a terminal.
func (a *app) printWrapped(text string) error {
	lines := []string{text}
	if width := a.palette().Width; width > 0 {
		lines = render.Wrap(text, width)
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}

// summary returns, for example, "12 of 13 objects ready (1 session, 12 dags), 1 waiting; 4 runs, 3 files written".
func summary(r *ops.RunResult) string {
	s := fmt.Sprintf("%d of %s ready (%s)", r.Ready, render.Plural(r.Total, "object"), kindCounts(r))
	for _, part := range []struct {
		n    int
		word string
	}{{r.Standing.Waiting, "waiting"}, {r.Standing.Failed, "failed"}, {r.Standing.Invalid, "invalid"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	if s += "; " + activity(r); r.MemoryBusy {
		s += "; the memory waits for a lock"
	}
	return s
}

// activity describes what a run did.
func activity(r *ops.RunResult) string {
	switch {
	case r.Unchanged:
		return "nothing changed since the last run"
	case r.Ran == 0 && r.Wrote == 0 && r.Commit == "":
		return "nothing to do" + exchanged(r)
	}
	s := render.Plural(r.Ran, "run") + ", " + render.Plural(r.Wrote, "file") + " written"
	if r.Commit != "" {
		s += ", committed as " + r.Commit[:min(len(r.Commit), 10)]
	}
	return s + exchanged(r)
}

// exchanged describes what a run pushed and pulled.
func exchanged(r *ops.RunResult) string {
	var s string
	switch {
	case r.Sent && r.Commit != "":
		s = " and pushed"
	case r.Sent:
		s = ", pushed earlier commits"
	}
	if r.Pulled {
		s += ", pulled commits of others"
	}
	return s
}

// kindCounts lists the kinds with their counts.
func kindCounts(r *ops.RunResult) string {
	var parts []string
	for _, c := range r.Objects {
		k, _ := kinds().Find(c.Kind)
		word := k.Plural
		if c.Total == 1 {
			word = k.Singular()
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.Total, word))
	}
	return strings.Join(parts, ", ")
}

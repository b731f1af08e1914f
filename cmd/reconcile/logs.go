package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func newLogsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logs KIND/NAME [NODE]",
		Short: "Print what the commands of a DAG printed",
		Long: `Print what the commands of a DAG printed: the last attempt of each node, or of one. Of a clarification request it is
what the agent that was asked printed, in each round or in one (round_1).

Full logs are local to the clone that ran the command (.reconcile/logs). Where a log is gone, the end of the output
that the status keeps is printed instead.`,
		Example: "  reconcile logs dag/checks\n  reconcile logs dag/checks unit_tests\n" +
			"  reconcile logs request/db-layer round_1",
		Args:              arguments(1, 2, "a DAG or a clarification request"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), args) },
		ValidArgsFunction: a.completeNodes(schemas.DAGKind, schemas.ClarificationRequestKind),
	}
}

// attempt is one run of a node whose output can be shown.
type attempt struct {
	Node   string `json:"node"`
	State  string `json:"state"`
	Took   string `json:"took,omitempty"`
	Log    string `json:"log,omitempty"` // path below the root
	Output string `json:"output"`        // the end of it
}

func (a *app) logs(ctx context.Context, args []string) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := find(t, args[0])
	if err != nil {
		return err
	}
	if e.Kind != schemas.DAGKind.Name && e.Kind != schemas.ClarificationRequestKind.Name {
		return badUsage("%s has no logs; DAGs and clarification requests have", e.Ref)
	}
	attempts := attemptsOf(e)
	if len(args) == 2 {
		if attempts, err = attemptOf(e, attempts, args[1]); err != nil {
			return err
		}
	}
	if a.global.output != formatTable {
		return a.print(attempts)
	}
	if len(attempts) == 0 {
		a.note("nothing of %s has run yet", e.Ref)
	}
	for i, at := range attempts {
		if err := a.printLog(s.Root(), at, len(args) == 1, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// attemptOf picks the attempt of one node.
func attemptOf(e *state.Entry, attempts []attempt, node string) ([]attempt, error) {
	for _, at := range attempts {
		if at.Node == node {
			return []attempt{at}, nil
		}
	}
	if err := findNode(e, node); err != nil && schemas.SpecAs[*schemas.DAGSpec](e.Object) != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s %s has not run yet; \"reconcile describe %s\" says why", e.Ref, node, e.Ref)
}

// attemptsOf lists the latest attempt of every node that has run or runs, in the order of the DAG.
func attemptsOf(e *state.Entry) []attempt {
	latest := map[string]*schemas.Run{}
	for _, r := range e.Runs {
		if was := latest[r.Node]; was == nil || was.FinishedAt.Before(r.FinishedAt.Time) {
			latest[r.Node] = r
		}
	}
	for _, c := range e.Claims {
		latest[c.Node] = &c.Run
	}
	st, _ := e.Status.(*schemas.DAGStatus)
	var out []attempt
	for _, name := range nodeNames(e) {
		switch r := latest[name]; {
		case r != nil:
			out = append(out, attemptFromRun(r))
		case st != nil && !st.Nodes[name].FinishedAt.IsZero():
			n := st.Nodes[name]
			out = append(out, attempt{Node: name, State: n.State, Took: took(n), Log: n.Log, Output: n.Output})
		}
	}
	return out
}

func attemptFromRun(r *schemas.Run) attempt {
	at := attempt{Node: r.Node, State: r.Outcome, Log: r.Log, Output: r.Output}
	if !r.Done() {
		at.State, at.Log = schemas.NodeRunning, state.LogPath(r.Key)
		return at
	}
	at.Took = took(schemas.NodeStatus{StartedAt: r.StartedAt, FinishedAt: r.FinishedAt})
	return at
}

// nodeNames lists the nodes of a DAG as declared, or, where the spec cannot be read, as the status knows them. Of a
// clarification request they are the rounds in which somebody was run.
func nodeNames(e *state.Entry) []string {
	if e.Kind == schemas.ClarificationRequestKind.Name {
		return roundNames(e)
	}
	var names []string
	if dag := schemas.SpecAs[*schemas.DAGSpec](e.Object); dag != nil {
		for _, n := range dag.Nodes {
			names = append(names, n.Name)
		}
		return names
	}
	if st, ok := e.Status.(*schemas.DAGStatus); ok {
		for _, layer := range st.Layers {
			names = append(names, layer...)
		}
	}
	return names
}

// roundNames lists the nodes under which the agent that is asked was run or runs: round_1, round_1_again, round_2.
func roundNames(e *state.Entry) []string {
	var names []string
	for _, r := range e.Runs {
		names = append(names, r.Node)
	}
	for _, c := range e.Claims {
		names = append(names, c.Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// printLog prints one attempt, from its log or from what is left of it.
func (a *app) printLog(root *os.Root, at attempt, headed, spaced bool) error {
	w := bufio.NewWriter(a.stdout)
	if headed {
		if spaced {
			fmt.Fprintln(w)
		}
		head := strings.TrimSpace(fmt.Sprintf("%s, %s %s", at.Node, at.State, at.Took))
		fmt.Fprintf(w, "==> %s <==\n", render.Line(head))
	}
	log, err := openLog(root, at.Log)
	if err == nil {
		defer log.Close()
		return errors.Join(a.copyText(w, log), w.Flush())
	}
	if at.Log != "" && at.State != schemas.NodeRunning {
		defer a.note("the full log of %s is gone (%s); this is the end of its output, from the status", at.Node, at.Log)
	}
	return errors.Join(a.copyText(w, strings.NewReader(endLine(at.Output))), w.Flush())
}

// openLog opens a regular file below the root.
func openLog(root *os.Root, path string) (*os.File, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	info, err := root.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return root.Open(path)
}

// copyText copies output: as it is into files and pipes, made harmless onto a terminal.
func (a *app) copyText(w io.Writer, r io.Reader) error {
	if !isTerminal(a.stdout) {
		_, err := io.Copy(w, r)
		return err
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if _, werr := io.WriteString(w, render.Text(string(line))); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

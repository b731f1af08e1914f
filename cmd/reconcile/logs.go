package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// logsOptions are the flags of logs.
type logsOptions struct {
	follow   bool
	failed   bool
	previous bool
	tail     int // lines; negative: all
}

func newLogsCmd(a *app) *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs KIND/NAME [NODE]",
		Short: "Print what the commands of a DAG printed",
		Long: `Print what the commands of a DAG printed: of each node, or of one, the attempt that counts. That is the latest under the
node's present definition and inputs, also where another one ran after it. Of a clarification request it is what the agent
that was asked printed, in each round or in one (round_1).

Full logs are local to the clone that ran the command (.reconcile/logs). Where a log is not here, the end of the output
that the record keeps is printed instead.`,
		Example: "  reconcile logs dag/checks\n  reconcile logs dag checks unit_tests --tail 50\n" +
			"  reconcile logs dag/checks unit_tests -f\n  reconcile logs --failed\n  reconcile logs request/db-layer round_1",
		Args:              arguments(0, 3, "a DAG or a clarification request"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), args, *o) },
		ValidArgsFunction: a.completeNodes(schemas.DAGKind, schemas.ClarificationRequestKind),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "print what a node prints until it ends, whoever runs it")
	f.BoolVar(&o.failed, "failed", false, "only nodes that failed; without a name, of all DAGs")
	f.BoolVar(&o.previous, "previous", false, "the attempt before the one that counts")
	f.IntVar(&o.tail, "tail", -1, "only the last `N` lines of each log")
	return cmd
}

// attempt is one run of a node whose output can be shown.
type attempt struct {
	Owner  string `json:"owner"`
	Node   string `json:"node"`
	State  string `json:"state"`
	Took   string `json:"took,omitempty"`
	Log    string `json:"log,omitempty"` // path below the root
	Output string `json:"output"`        // the end of it

	former bool // it ran before the node was changed
}

// logsArgs reads what to print of: "dag/checks build" and "dag checks build" are the same.
func logsArgs(args []string, o logsOptions) (object, node string, err error) {
	args = withRef(args)
	switch {
	case len(args) > 2:
		return "", "", badUsage("logs takes KIND/NAME and a NODE, not %q", args[2])
	case len(args) == 0 && !o.failed:
		return "", "", badUsage("logs needs a DAG or a clarification request, as in \"reconcile logs dag/NAME\"; --failed alone prints of all DAGs")
	case o.follow && (o.failed || o.previous):
		return "", "", badUsage("--follow shows what runs now; it goes with neither --failed nor --previous")
	case len(args) == 0:
		return "", "", nil
	case len(args) == 2:
		node = args[1]
	}
	return args[0], node, nil
}

func (a *app) logs(ctx context.Context, args []string, o logsOptions) error {
	object, node, err := logsArgs(args, o)
	if err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	owners := t.Entries(schemas.DAGKind.Name)
	now := t
	if object != "" {
		e, err := ops.Find(t, object)
		if err != nil {
			return err
		}
		if e.Kind != schemas.DAGKind.Name && e.Kind != schemas.ClarificationRequestKind.Name {
			return badUsage("%s has no logs; DAGs and clarification requests have", e.Ref)
		}
		owners, now = []*state.Entry{e}, a.decided(t, e.Ref)
	}
	if o.follow {
		return a.followLog(ctx, s, t, owners[0], node, o)
	}
	attempts := []attempt{}
	for _, e := range owners {
		some, err := chosenAttempts(e, now.Entry(e.Ref), node, o)
		if err != nil {
			return err
		}
		attempts = append(attempts, some...)
	}
	if a.global.output != formatTable {
		return a.print(attempts)
	}
	switch {
	case len(attempts) > 0:
	case o.failed:
		a.note("no node has failed")
	default:
		a.note("nothing of %s has run yet", owners[0].Ref)
	}
	for i, at := range attempts {
		head := ""
		switch {
		case object == "":
			head = at.Owner + " " + at.head()
		case node == "":
			head = at.head()
		}
		if err := a.printLog(s.Root(), at, head, i > 0, o.tail); err != nil {
			return err
		}
	}
	return nil
}

// decided is the tree as the next turn of a run sees an object, so that it is known what counts, also while another process
// runs it, or after an edit. Nothing is written.
func (a *app) decided(t *state.Tree, ref schemas.Ref) *state.Tree {
	return controllers.Settle(t, a.now(), []schemas.Ref{ref}).Tree
}

// chosenAttempts picks what the flags ask for of an object: e as it is on disk, now as it is decided.
func chosenAttempts(e, now *state.Entry, node string, o logsOptions) ([]attempt, error) {
	var out []attempt
	if now == nil {
		now = e
	}
	st, _ := now.Status().(*schemas.DAGStatus)
	for _, name := range controllers.NodeNames(e) {
		failed := st != nil && st.Nodes[name].State == schemas.NodeFailed
		if node != "" && name != node || o.failed && !failed {
			continue
		}
		at, ok := attemptOf(now, name, o.previous)
		if !ok && !o.previous {
			at, ok = attemptOf(e, name, false)
			at.former = true
		}
		if ok {
			out = append(out, at)
		}
	}
	if node == "" || len(out) > 0 {
		return out, nil
	}
	if err := ops.FindNode(e, node); err != nil && schemas.SpecAs[*schemas.DAGSpec](e.Object) != nil {
		return nil, err
	}
	switch {
	case o.previous:
		return nil, fmt.Errorf("%s %s has had no attempt before; without --previous it is the one that counts", e.Ref, node)
	case o.failed:
		return nil, nil
	}
	return nil, fmt.Errorf("%s %s has not run yet; \"reconcile describe %s\" says why", e.Ref, node, e.Ref)
}

// attemptOf is the attempt of a node that counts, or the one before it.
func attemptOf(e *state.Entry, node string, previous bool) (attempt, bool) {
	list, fits := controllers.Attempts(e, node)
	st, _ := e.Status().(*schemas.DAGStatus)
	if fits == 0 && st != nil && !st.Nodes[node].FinishedAt.IsZero() {
		if previous {
			fits, list = 1, append(list, nil) // its record was pruned; the status has it
		} else {
			n := st.Nodes[node]
			return attempt{Owner: e.Ref.String(), Node: node, State: n.State, Took: render.Took(n), Log: n.Log, Output: n.Output}, true
		}
	}
	i := len(list) - 1
	if previous {
		i--
	}
	if i < 0 {
		return attempt{}, false
	}
	return attemptFromRun(e, list[i], st != nil && i < len(list)-fits), true
}

func attemptFromRun(e *state.Entry, r *schemas.Run, former bool) attempt {
	at := attempt{Owner: e.Ref.String(), Node: r.Node, State: r.Outcome, Log: r.Log, Output: r.Output, former: former}
	if !r.Done() {
		at.State, at.Log = schemas.NodeRunning, state.LogPath(r.Key)
		return at
	}
	at.Took = render.Took(schemas.NodeStatus{StartedAt: r.StartedAt, FinishedAt: r.FinishedAt})
	return at
}

// head names an attempt where several are printed.
func (at attempt) head() string {
	return strings.TrimSpace(fmt.Sprintf("%s, %s %s", at.Node, at.State, at.Took))
}

// printLog prints one attempt, from its log or from what is left of it.
func (a *app) printLog(root *os.Root, at attempt, head string, spaced bool, tail int) error {
	w := bufio.NewWriter(a.stdout)
	if head != "" {
		if spaced {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "==> %s <==\n", render.Line(head))
	}
	if at.former {
		a.note("%s %s has not run since it was changed; this is the attempt before", at.Owner, at.Node)
	}
	log, err := openLog(root, at.Log)
	if err == nil {
		defer log.Close()
		return errors.Join(seekTail(log, tail), a.copyText(w, log), w.Flush())
	}
	if at.Log != "" && at.State != schemas.NodeRunning {
		defer a.note("the log of %s %s is not here (%s): logs stay where the node ran, and go with its record; this is the end "+
			"of the output, which the record keeps. \"reconcile retry %s %s\" runs it again here", at.Owner, at.Node, at.Log, at.Owner, at.Node)
	}
	return errors.Join(a.copyText(w, strings.NewReader(lastLines(endLine(at.Output), tail))), w.Flush())
}

// openLog opens a regular file below the root.
func openLog(root *os.Root, path string) (*os.File, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	if info, err := root.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	f, _, err := regular.Open(root, path)
	return f, err
}

// seekTail moves to the beginning of the last n lines of a file; negative: to its beginning.
func seekTail(f *os.File, n int) error {
	end, err := f.Seek(0, io.SeekEnd)
	switch {
	case err != nil || n == 0:
		return err
	case n < 0:
		return rewind(f, 0)
	}
	block := make([]byte, 64<<10)
	for at := end; at > 0; {
		size := min(at, int64(len(block)))
		at -= size
		if _, err := f.ReadAt(block[:size], at); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			if block[i] != '\n' || at+i == end-1 {
				continue // the end of the last line is not the beginning of another one
			}
			if n--; n <= 0 {
				return rewind(f, min(at+i+1, end))
			}
		}
	}
	return rewind(f, 0)
}

func rewind(f *os.File, at int64) error {
	_, err := f.Seek(at, io.SeekStart)
	return err
}

// lastLines is the end of a text; of fewer lines, or with a negative number, all of it.
func lastLines(s string, n int) string {
	lines := strings.SplitAfter(s, "\n")
	lines = lines[:len(lines)-1] // of a text that ends with a line feed, or is empty
	if n < 0 || len(lines) <= n {
		return s
	}
	return strings.Join(lines[len(lines)-n:], "")
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

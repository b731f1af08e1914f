package ops

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// LogsRequest requests the output of the commands of a DAG, or of the agent that was asked in a clarification.
type LogsRequest struct {
	Object   string // kind/name, or the id of a clarification; "": all DAGs, only with Failed
	Node     string // "": all nodes
	Failed   bool   // only failed nodes
	Previous bool   // the attempt before the current one
}

// LogsResult has the requested attempts.
type LogsResult struct {
	Of       schemas.Ref // the requested object; zero: all DAGs
	Attempts []Attempt   // never nil
}

// Attempt is one run of a node with its output.
type Attempt struct {
	Owner  string `json:"owner"`
	Node   string `json:"node"`
	State  string `json:"state"`
	Took   string `json:"took,omitempty"`
	Log    string `json:"log,omitempty"` // path relative to the root
	Output string `json:"output"`        // the end of it
	// Message says why it failed.
	Message string `json:"message,omitempty"`

	Former bool `json:"-"` // it ran before the node was changed
}

// Logs returns the attempts of the nodes of a DAG with the output in their logs: the current attempts, or with Previous
// the ones before them.
func Logs(ctx context.Context, env Env, q LogsRequest) (LogsResult, error) {
	r := LogsResult{Attempts: []Attempt{}}
	if q.Object == "" && !q.Failed {
		return r, badRequest("logs needs a DAG or a clarification request, as in \"reconcile logs dag/NAME\"; --failed alone " +
			"prints of all DAGs")
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return r, typed(err)
	}
	defer s.Close()
	var owners []*state.Entry
	now := t
	if q.Object == "" {
		owners = t.Entries(schemas.DAGKind.Name)
	} else {
		e, err := logged(t, q.Object)
		if err != nil {
			return r, typed(err)
		}
		r.Of, owners, now = e.Ref, []*state.Entry{e}, env.decided(t, e.Ref)
	}
	for _, e := range owners {
		some, err := selectAttempts(e, now.Entry(e.Ref), q)
		if err != nil {
			return r, typed(err)
		}
		r.Attempts = append(r.Attempts, some...)
	}
	return r, nil
}

// logged returns an object whose runs have logs.
func logged(t *state.Tree, word string) (*state.Entry, error) {
	e, err := find(t, word)
	if err != nil {
		return nil, err
	}
	if k := settle.RowOf(t, e.Kind); k == nil || !k.Performs {
		err = badRequest("%s has no logs; DAGs, sessions and clarification requests have", e.Ref)
	}
	return e, err
}

// decided returns the tree as the next turn of a run would decide it for an object. The current attempt is then known
// even if another process runs it, or after an edit. It writes nothing.
func (e Env) decided(t *state.Tree, ref schemas.Ref) *state.Tree {
	return settle.Tree(t, e.Tree.Now(), []schemas.Ref{ref}).Tree
}

// ReadLog opens the log of an attempt, to read its last lines, or all of it with a negative number. whole is false if the
// log does not exist and only the end in the record is returned.
func ReadLog(_ context.Context, env Env, at Attempt, lines int) (text io.ReadCloser, whole bool, err error) {
	root, err := regular.Root(env.Tree.Dir)
	if err != nil {
		return nil, false, typed(fmt.Errorf("open %s: %w", env.Tree.Dir, regular.Cause(err)))
	}
	defer root.Close()
	log, err := openLog(root, at.Log)
	if err != nil {
		return io.NopCloser(strings.NewReader(lastLines(render.EndLine(at.Output), lines))), false, nil
	}
	return log, true, typed(seekTail(log, lines))
}

// selectAttempts selects the requested attempts of an object: e has its state on disk, now its decided state.
func selectAttempts(e, now *state.Entry, q LogsRequest) ([]Attempt, error) {
	var out []Attempt
	if now == nil {
		now = e
	}
	st, _ := now.Status().(*schemas.DAGStatus)
	if q.Node == schemas.OnFailure || q.Node == schemas.OnSuccess {
		return noticeAttempts(now, st, q.Node)
	}
	for _, name := range nodes.NodeNames(e) {
		failed := st != nil && st.Nodes.Of(name).State == schemas.NodeFailed
		if q.Node != "" && name != q.Node || q.Failed && !failed {
			continue
		}
		at, ok := attemptOf(now, name, q.Previous)
		if !ok && !q.Previous {
			at, ok = attemptOf(e, name, false)
			at.Former = true
		}
		if ok {
			out = append(out, at)
		}
	}
	if q.Node == "" || len(out) > 0 {
		return out, nil
	}
	if err := findNode(e, q.Node); err != nil && schemas.SpecAs[*schemas.DAGSpec](e.Object) != nil {
		return nil, err
	}
	switch {
	case q.Previous:
		return nil, fmt.Errorf("%s %s has had no attempt before; without --previous it is the one that counts", e.Ref, q.Node)
	case q.Failed:
		return nil, nil
	}
	return nil, fmt.Errorf("%s %s has not run yet; \"reconcile describe %s\" says why", e.Ref, q.Node, e.Ref)
}

// noticeAttempts are the attempts to report the latest end of a DAG, oldest first.
func noticeAttempts(e *state.Entry, st *schemas.DAGStatus, on string) (out []Attempt, err error) {
	for _, r := range e.Runs() {
		if r.Node == on && st != nil && slices.ContainsFunc(st.Notices, func(n schemas.Notice) bool { return n.Key == r.NodeKey }) {
			out = append(out, attemptFromRun(e, r, false))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has sent no notification of %s for its latest end", e.Ref, on)
	}
	return out, nil
}

// attemptOf returns the current attempt of a node, or the one before it.
func attemptOf(e *state.Entry, node string, previous bool) (Attempt, bool) {
	list, fits := nodes.Attempts(e, node)
	st, _ := e.Status().(*schemas.DAGStatus)
	if fits == 0 && st != nil && !st.Nodes.Of(node).FinishedAt.IsZero() {
		if previous {
			fits, list = 1, append(list, nil) // its record was pruned; the status has it
		} else {
			n := st.Nodes.Of(node)
			return Attempt{Owner: e.Ref.String(), Node: node, State: n.State, Took: render.Took(n), Log: n.Log, Output: n.Output, Message: n.Message}, true
		}
	}
	i := len(list) - 1
	if previous {
		i--
	}
	if i < 0 {
		return Attempt{}, false
	}
	return attemptFromRun(e, list[i], !previous && st != nil && fits == 0), true
}

func attemptFromRun(e *state.Entry, r *schemas.Run, Former bool) Attempt {
	at := Attempt{Owner: e.Ref.String(), Node: r.Node, State: r.Outcome, Log: r.Log, Output: r.Output, Message: r.Message, Former: Former}
	if !r.Done() {
		at.State, at.Log = schemas.NodeRunning, state.LogPath(r.Key)
		return at
	}
	at.Took = render.Took(schemas.NodeStatus{StartedAt: r.StartedAt, FinishedAt: r.FinishedAt})
	return at
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

// seekTail seeks to the start of the last n lines of a file, or with a negative number to its start.
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
				continue // the end of the last line does not start another one
			}
			if n--; n <= 0 {
				return rewind(f, min(at+i+1, end))
			}
		}
	}
	return rewind(f, 0)
}

// lastLines returns the last n lines of a text, or all with a negative number.
func lastLines(s string, n int) string {
	lines := strings.SplitAfter(s, "\n")
	lines = lines[:len(lines)-1] // the text ends with a line feed, or is empty
	if n < 0 || len(lines) <= n {
		return s
	}
	return strings.Join(lines[len(lines)-n:], "")
}

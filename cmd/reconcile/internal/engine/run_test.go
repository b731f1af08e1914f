package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// recorder is a sink that keeps what a run has to say.
type recorder struct {
	mu       sync.Mutex
	finished []string // nodes
	notes    []string
	turns    chan struct{} // has a token after a turn
}

func (r *recorder) Report(p settle.Report) {
	if p.Kind == settle.Finished {
		r.finished = append(r.finished, p.Run.Node)
	}
}

func (r *recorder) Tree(*state.Tree) {
	select {
	case r.turns <- struct{}{}:
	default:
	}
}

func (r *recorder) Said(*settle.Clarified) {}
func (r *recorder) Missed(int)             {}
func (r *recorder) Count(string, int, int) {}
func (r *recorder) Warn(text string)       { r.Note(text) }
func (r *recorder) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

// newTree is a tree with one DAG of two nodes, and what a run of it works with.
func newTree(t *testing.T) (Options, *recorder) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"specs/sessions/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {}\n",
		"specs/dags/checks.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: checks}\n" +
			"spec: {session: work, nodes: [{name: build, run: [sh, -c, echo built > built]}, {name: check, run: [cat, built], needs: [build]}]}\n",
	} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	sink := &recorder{turns: make(chan struct{}, 1)}
	return Options{Tree: tree.Config{Dir: dir, Now: time.Now, Getenv: func(string) string { return "" }}, Sink: sink}, sink
}

// TestRun runs a tree to its fixed point, finds nothing to do the second time, and performs one node of it on request.
func TestRun(t *testing.T) {
	t.Parallel()
	o, sink := newTree(t)
	first, err := Run(t.Context(), o, Request{Only: &settle.Selection{DAG: "checks", Nodes: []string{"build"}}})
	if err != nil || first.Ran != 1 || !slices.Equal(sink.finished, []string{"build"}) {
		t.Fatalf("one node: ran %d, finished %q, notes %q, %v", first.Ran, sink.finished, sink.notes, err)
	}
	rest, err := Run(t.Context(), o, Request{})
	if err != nil || rest.Ran != 1 || rest.Verdict != readiness.ExitReady || rest.Unchanged {
		t.Fatalf("the rest: %+v, %v", rest, err)
	}
	e := rest.Tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: "checks"})
	if st := e.Status().(*schemas.DAGStatus); st.Progress.Done != 2 {
		t.Errorf("the status says %+v", st.Progress)
	}
	same, err := Run(t.Context(), o, Request{})
	if err != nil || !same.Unchanged || same.Tree != nil || same.Ran+same.Wrote != 0 {
		t.Errorf("nothing to do: %+v, %v", same, err)
	}
}

// TestRunThatDecidesOnly writes statuses and starts nothing.
func TestRunThatDecidesOnly(t *testing.T) {
	t.Parallel()
	o, sink := newTree(t)
	r, err := Run(t.Context(), o, Request{DecideOnly: true})
	if err != nil || r.Ran != 0 || r.Wrote == 0 || len(sink.finished) != 0 {
		t.Errorf("%+v, finished %q, %v", r, sink.finished, err)
	}
	if _, err := os.Stat(filepath.Join(o.Tree.Dir, "built")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a node ran: %v", err)
	}
}

// TestRunsThatAreRefused end before anything is done, with errors that say what kind they are.
func TestRunsThatAreRefused(t *testing.T) {
	t.Parallel()
	o, _ := newTree(t)
	for _, q := range []Request{{Commit: true}, {Push: true}} {
		_, err := Run(t.Context(), o, q)
		var none *commits.NoRepositoryError
		if !errors.As(err, &none) || !errors.Is(err, gitrepo.ErrNotARepo) || none.Request != (commits.Request{Commit: q.Commit, Push: q.Push}) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	inside := o
	inside.Inside = &runner.Inside{Key: "dags/checks/build-1"}
	var nested *nestedError
	if _, err := Run(t.Context(), inside, Request{}); !errors.As(err, &nested) || nested.Key != "dags/checks/build-1" {
		t.Errorf("inside of a run: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, o, Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Tree.Dir, "state")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was recorded: %v", err)
	}
}

// TestWatch follows changes of files until its context ends, which is no error.
func TestWatch(t *testing.T) {
	t.Parallel()
	o, sink := newTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	var res Result
	go func() {
		var err error
		res, err = Run(ctx, o, Request{Watch: true})
		done <- err
	}()
	node := filepath.Join(o.Tree.Dir, "specs", "dags", "late.yaml")
	late := "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: late}\nspec: {session: work, nodes: [{name: n, run: [touch, late]}]}\n"
	written := false
	for {
		select {
		case err := <-done:
			t.Fatalf("it ended: %v; notes %q", err, sink.notes)
		case <-sink.turns:
		}
		if _, err := os.Stat(filepath.Join(o.Tree.Dir, "built")); err == nil && !written {
			written = true
			if err := os.WriteFile(node, []byte(late), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(filepath.Join(o.Tree.Dir, "late")); err == nil {
			break
		}
	}
	cancel()
	if err := <-done; err != nil || res.Ran < 1 { // the end may come before that of the node that has just made its file
		t.Errorf("%+v, %v", res, err)
	}
}

package main

import (
	"io"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/schemas"
)

// TestWaitGoesByWhatIsThere: what a journal said at the beginning of the wait is forgotten when the journal does not say it
// any more, although the status file stays as it is.
func TestWaitGoesByWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"specs/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {}\n",
		"specs/job.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: job}\n" +
			"spec: {session: work, nodes: [{name: do, run: [echo]}]}\n",
	})
	a := &app{stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }, now: time.Now, engine: engine.Run}
	a.global.dir = dir
	if _, err := a.reconcile(t.Context(), engine.Request{}, false); err != nil {
		t.Fatal(err)
	}
	other, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before, err := other.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ref := schemas.Ref{Kind: schemas.DAGKind.Name, Name: "job"}
	run := *before.Entry(ref).Runs()[0]
	run.Key, run.Seq = run.Key[:len(run.Key)-1]+"2", 2
	j, err := other.Journal()
	if err == nil {
		err = j.Claim([]schemas.Run{{Key: run.Key, Owner: run.Owner, Node: run.Node, NodeKey: run.NodeKey, Seq: run.Seq}})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, tree, err := a.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := &waiter{app: a, store: s, tree: tree, goal: goal{condition: schemas.Ready, value: "True"}, refs: []schemas.Ref{ref}}
	for range 2 { // the first look is at all files
		if len(w.open()) != 1 {
			t.Fatalf("%s although it is claimed", w.standing(ref))
		}
		if err := w.next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Release([]string{run.Key}); err != nil {
		t.Fatal(err)
	}
	if err := w.next(t.Context()); err != nil || len(w.open()) > 0 {
		t.Errorf("%v; %s", err, w.standing(ref))
	}
}

package loop

import (
	"context"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// oneTool says the same version of all programs.
type oneTool struct{ version string }

func (o oneTool) Version(context.Context, string) settle.Tool { return settle.Tool{Version: o.version} }
func (oneTool) Save() error                                   { return nil }

// TestToolsOfFinishedDAGs runs a finished DAG again when the version of its tool changed, although a run leaves finished DAGs
// that did not change.
func TestToolsOfFinishedDAGs(t *testing.T) {
	dir := tree(t, "    - {name: a, tools: [go], run: [x]}\n")
	put(t, dir, "specs/dags/called.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: called}\nspec:\n  template: true\n"+
		"  nodes: [{name: c, tools: [go], run: [x]}]\n")
	put(t, dir, "specs/dags/calls.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: calls}\nspec:\n  session: work\n"+
		"  nodes: [{name: b, dag: called}]\n")
	for _, is := range []struct {
		version string
		ran     int
	}{{"go1", 1}, {"go1", 0}, {"go2", 1}, {"go1", 0}} {
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Build: "test", DormantFrom: 1})
		if err != nil {
			t.Fatal(err)
		}
		a := newActor(always(0, schemas.OutcomeSucceeded))
		l := &Loop{Store: s, Perform: a, Now: time.Now, CPUs: 2, Tools: oneTool{is.version}}
		s.Fresh()
		if _, err := l.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.runs["a"] != is.ran || a.runs["b_c"] != is.ran {
			t.Errorf("with %s, a ran %d times and b_c %d times, not %d", is.version, a.runs["a"], a.runs["b_c"], is.ran)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

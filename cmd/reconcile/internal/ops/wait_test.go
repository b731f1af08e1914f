package ops

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/schemas"
)

// TestWaitGoesByWhatIsThere: what a journal said at the beginning of the wait is forgotten when the journal does not say it
// any more, although the status file stays as it is.
func TestWaitGoesByWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {}\n",
		"job.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: job}\n" +
			"spec: {session: work, nodes: [{name: do, run: [echo]}]}\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "specs"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "specs", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{Tree: tree.Config{Dir: dir, Now: time.Now, Getenv: func(string) string { return "" }}}
	env.Caller = caller.Caller{Dir: dir, Getenv: env.Tree.Getenv}
	if _, err := Run(t.Context(), env, RunRequest{}); err != nil {
		t.Fatal(err)
	}
	other, err := env.Tree.Open()
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
	o, err := env.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer o.store.Close()
	w := &waiter{env: env, open: o, goal: goal{condition: schemas.Ready, value: "True"}, refs: []schemas.Ref{ref}}
	if w.follower, err = env.follow(10*time.Millisecond, w.paths()...); err != nil {
		t.Fatal(err)
	}
	defer w.follower.close()
	for range 2 { // the first look is at all files
		if len(w.unmet()) != 1 {
			t.Fatalf("%s although it is claimed", w.currentState(ref))
		}
		if err := w.next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Release([]string{run.Key}); err != nil {
		t.Fatal(err)
	}
	if err := w.next(t.Context()); err != nil || len(w.unmet()) > 0 {
		t.Errorf("%v; %s", err, w.currentState(ref))
	}
}

func TestParseGoal(t *testing.T) {
	for text, want := range map[string]goal{
		"condition=Ready":         {"Ready", "True"},
		"condition=Stalled=False": {"Stalled", "False"},
		"phase=Succeeded":         {"", "Succeeded"},
	} {
		if got, err := parseGoal(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Ready", "phase=", "phase=A=B", "condition=", "condition=Ready=", "delete"} {
		if got, err := parseGoal(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

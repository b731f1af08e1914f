package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

var testKinds = schemas.Kinds{
	schemas.SettingsKind, schemas.SessionKind, schemas.AgentKind, schemas.WorkflowKind, schemas.DAGKind,
	schemas.ClarificationRequestKind, schemas.ReplyKind, schemas.ObservationKind, schemas.ActionKind,
}

// put writes files below dir.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for p, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Kinds: testKinds, Now: time.Now, Agent: "test", Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func load(t testing.TB, s *Store) *Tree {
	t.Helper()
	tree, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func refresh(t testing.TB, s *Store, prev *Tree, hints ...string) (*Tree, []schemas.Ref) {
	t.Helper()
	tree, refs, err := s.Refresh(t.Context(), prev, append([]string{}, hints...))
	if err != nil {
		t.Fatal(err)
	}
	return tree, refs
}

const (
	sessionYAML = `apiVersion: reconcile.dev/v1alpha1
kind: Session
metadata: {name: health}
spec: {title: Health}
`
	dagYAML = `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: checks}
spec:
  session: health
  nodes:
    - name: build
      run: [go, build]
      inputs: ["**/*.go"]
    - name: test
      needs: [build]
      run: [go, test]
`
)

var (
	health = schemas.Ref{Kind: "Session", Name: "health"}
	checks = schemas.Ref{Kind: "DAG", Name: "checks"}
)

func TestLoadWriteRefresh(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/a/health.yaml": sessionYAML, "specs/checks.yaml": dagYAML, "x/main.go": "package x"})
	s := open(t, dir)
	tree := load(t, s)
	if tree.Entry(health).Object == nil || tree.Entry(checks).Object == nil || len(tree.Problems()) != 0 {
		t.Fatalf("objects are missing: %v", tree.Problems())
	}
	if tree.Entry(checks).Inputs["build"] == "" {
		t.Error("the inputs have no digest")
	}
	l, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st := &schemas.SessionStatus{Common: schemas.Common{Phase: "Active"}}
	b, err := EncodeStatus(health, st)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), []Change{{Path: s.StatusPath(health), Data: b}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	next, refs := refresh(t, s, tree, "state/sessions/health.json")
	if len(refs) != 1 || next.Entry(health).Status.Base().Phase != "Active" {
		t.Fatalf("refs %v, status %+v", refs, next.Entry(health).Status)
	}
	if again := load(t, open(t, dir)); again.Entry(health).Status.Base().Phase != "Active" {
		t.Error("the status was not read")
	}
	if err := os.Remove(filepath.Join(dir, "specs/a/health.yaml")); err != nil {
		t.Fatal(err)
	}
	next, refs = refresh(t, s, next, "specs/a/health.yaml")
	if len(refs) != 2 || !next.Entry(checks).Broken() || !next.Entry(health).Gone() {
		t.Fatalf("refs %v, problems %v", refs, next.Problems())
	}
}

func TestSettle(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, "specs/checks.yaml": dagYAML, "x/main.go": "package x"})
	s := open(t, dir)
	load(t, s)
	if _, ok := s.Fresh(); ok {
		t.Fatal("fresh before it was settled")
	}
	if err := s.Settle(Summary{Exit: 4}); err != nil {
		t.Fatal(err)
	}
	if sum, ok := open(t, dir).Fresh(); !ok || sum.Exit != 4 {
		t.Fatal("not fresh after it was settled")
	}
	put(t, dir, map[string]string{"x/main.go": "package y"})
	if _, ok := open(t, dir).Fresh(); ok {
		t.Fatal("fresh although an input changed")
	}
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, "specs/checks.yaml": dagYAML})
	a, b := open(t, dir), open(t, dir)
	tree := load(t, b)
	j, err := a.Journal()
	if err != nil {
		t.Fatal(err)
	}
	run := schemas.Run{Key: "dags/checks/build-0123456789abcdef-1", Owner: "dag/checks", Node: "build", NodeKey: "k", Seq: 1}
	if err := j.Claim([]schemas.Run{run}); err != nil {
		t.Fatal(err)
	}
	if err := j.Started(run.Key, time.Now(), os.Getpid()); err != nil {
		t.Fatal(err)
	}
	tree, refs := refresh(t, b, tree, []string{}...)
	if len(refs) != 1 || len(tree.Entry(checks).Claims) != 1 || tree.Entry(checks).Claims[0].PID == 0 {
		t.Fatalf("refs %v, entry %+v", refs, tree.Entry(checks))
	}
	run.Outcome = schemas.OutcomeSucceeded
	if err := j.Finish([]schemas.Run{run}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	tree, _ = refresh(t, b, tree, []string{}...)
	if e := tree.Entry(checks); len(e.Claims) != 0 || len(e.Runs) != 1 {
		t.Fatalf("entry %+v", e)
	}
}

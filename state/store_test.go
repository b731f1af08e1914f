package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	if len(refs) != 1 || next.Entry(health).Status().Base().Phase != "Active" {
		t.Fatalf("refs %v, status %+v", refs, next.Entry(health).Status())
	}
	if again := load(t, open(t, dir)); again.Entry(health).Status().Base().Phase != "Active" {
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
	if e := tree.Entry(checks); len(e.Claims) != 0 || e.RunCount() != 1 {
		t.Fatalf("entry %+v", e)
	}
}

func TestRefreshAfterAnInterruptedOne(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML})
	s := open(t, dir)
	tree := load(t, s)
	put(t, dir, map[string]string{"specs/checks.yaml": dagYAML})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Refresh(ctx, tree, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	tree, refs := refresh(t, s, tree, "x")
	if !slices.Equal(refs, []schemas.Ref{checks}) || tree.Entry(checks) == nil {
		t.Errorf("refs %v", refs)
	}
}

// TestRecoverBeforeLoad checks that results go to the folder that the settings name, whatever is called first.
func TestRecoverBeforeLoad(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"reconcile.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\n" +
		"metadata: {name: settings}\nspec: {folders: {state: seen}}\n"})
	cmd := holder(t, dir)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s := open(t, dir)
	if _, err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "seen/runs", run(1).Key+".json")); err != nil {
		t.Error(err)
	}
	if p := s.StatusPath(health); p != "seen/sessions/health.json" {
		t.Errorf("status path %q", p)
	}
}

// TestTwoStoresAtOneMoment checks that two journals of one process, opened at one moment, are two.
func TestTwoStoresAtOneMoment(t *testing.T) {
	dir := t.TempDir()
	at := time.Now()
	for i := 1; i <= 2; i++ {
		s, err := Open(dir, Options{Kinds: testKinds, Now: func() time.Time { return at }})
		must(t, err)
		defer s.Close()
		j := journal(t, s)
		defer j.Close()
		must(t, j.Claim([]schemas.Run{run(i)}))
	}
	expect(t, load(t, open(t, dir)).Entry(checks), "", "1 2")
}

func TestOpenNeedsAFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"file": ""})
	for _, p := range []string{"missing", "file"} {
		if s, err := Open(filepath.Join(dir, p), Options{Kinds: testKinds, Now: time.Now}); err == nil {
			s.Close()
			t.Errorf("%s was opened", p)
		}
	}
	if tree := load(t, open(t, dir)); tree.Len() != 0 || len(tree.Problems()) != 0 {
		t.Error("an empty folder is not an empty tree")
	}
	if _, err := os.Stat(filepath.Join(dir, localDir, "journal")); err == nil {
		t.Error("loading made a journal")
	}
}

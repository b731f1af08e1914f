package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/state"
)

// open returns the environment of a copy of the tree that the scripts of the command line use, too.
func open(t *testing.T) ops.Env {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "testdata", "tree"))); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	getenv := func(string) string { return "" }
	return ops.Env{Tree: tree.Config{Dir: dir, Now: now, Getenv: getenv}, Caller: caller.Caller{Dir: dir, Getenv: getenv}}
}

// refused checks that an operation ends with a code when it is canceled, and when its tree is not there.
func refused(t *testing.T, call func(context.Context, ops.Env) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed *ops.Error
	if err := call(ctx, open(t)); !errors.As(err, &failed) || failed.Code != ops.Interrupted {
		t.Errorf("canceled: %v", err)
	}
	env := open(t)
	env.Tree.Dir = filepath.Join(env.Tree.Dir, "nowhere")
	if err := call(t.Context(), env); !errors.As(err, &failed) || failed.Code != ops.Failure {
		t.Errorf("without a tree: %v", err)
	}
}

func write(t *testing.T, env ops.Env, name, text string) {
	t.Helper()
	name = filepath.Join(env.Tree.Dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDigest(t *testing.T) {
	const ledger = `{"issueNumber": 7, "clarifications": [{"id": "CLR-7-001", "from": "engineer", "to": "architect",
  "topic": "db", "status": "resolved", "blocking": true, "created": "2026-02-27T10:00:00Z", "round": 1,
  "resolvedAt": "2026-02-27T10:05:00Z",
  "thread": [{"round": 1, "type": "question", "from": "engineer", "content": "Which?", "timestamp": "2026-02-27T10:00:00Z"}]}]}`
	env := open(t)
	write(t, env, "state/clarifications/issue-7.json", ledger)
	all, err := ops.Digest(t.Context(), env, ops.DigestRequest{})
	if err != nil {
		t.Fatal(err)
	}
	later, err := ops.Digest(t.Context(), env, ops.DigestRequest{Since: env.Tree.Now()})
	if err != nil || all.Total != later.Total+1 {
		t.Errorf("%d in all, %d since now, %v", all.Total, later.Total, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Digest(ctx, env, ops.DigestRequest{})
		return err
	})
}

func TestPlan(t *testing.T) {
	env := open(t)
	write(t, env, "specs/dags/planned.yaml", `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: planned}
spec:
  session: health
  nodes:
    - {name: build, run: ["true"], inputs: ["nothing/**/*.go"]}
`)
	plan, err := ops.Plan(t.Context(), env, ops.PlanRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, step := range plan.Steps {
		found = found || step.Ref.String() == "dag/planned" && step.Node == "build"
	}
	advised, err := ops.Plan(t.Context(), env, ops.PlanRequest{Advice: true})
	if err != nil || !found || len(advised.Problems) <= len(plan.Problems) {
		t.Errorf("%v, %+v, advice %v", err, plan, advised.Problems)
	}
	if plan.AsOf != "" {
		t.Errorf("no one shares the branch, and the plan says %q", plan.AsOf)
	}
	write(t, env, "reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {git: {push: true}}\n")
	if plan, err = ops.Plan(t.Context(), env, ops.PlanRequest{}); err != nil || !strings.Contains(plan.AsOf, "it has not fetched") {
		t.Errorf("on a shared branch: %q, %v", plan.AsOf, err)
	}
	write(t, env, "specs/dags/broken.yaml", "kind: DAG\n")
	if plan, err = ops.Plan(t.Context(), env, ops.PlanRequest{}); err != nil || plan.Verdict != ops.Invalid {
		t.Errorf("with a broken file: %v, %v", plan.Verdict, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Plan(ctx, env, ops.PlanRequest{})
		return err
	})
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ops.Code
	}{
		{nil, ops.OK},
		{errors.New("broken"), ops.Failure},
		{fmt.Errorf("turn: %w", context.Canceled), ops.Interrupted},
		{fmt.Errorf("lock: %w", state.ErrBusy), ops.Busy},
		{&tree.NoHistoryError{Err: errors.New("none")}, ops.BadRequest},
		{fmt.Errorf("plan: %w", &ops.Error{Code: ops.NotReady, Err: errors.New("stalled")}), ops.NotReady},
	} {
		if got := ops.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

// notes is a sink that keeps what an operation reports.
type notes struct{ notes, warnings []string }

func (n *notes) Note(text string)       { n.notes = append(n.notes, text) }
func (n *notes) Warn(text string)       { n.warnings = append(n.warnings, text) }
func (n *notes) Count(string, int, int) {}

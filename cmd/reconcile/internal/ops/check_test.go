package ops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/mirror"
)

func TestValidate(t *testing.T) {
	env := open(t)
	validate := func(paths ...string) ops.Validation {
		t.Helper()
		v, err := ops.Validate(t.Context(), env, ops.ValidateRequest{Paths: paths})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := validate(); v.Errors > 0 || v.Files < 10 || v.Verdict() != ops.OK {
		t.Errorf("%+v", v)
	}
	write(t, env, "specs/dags/broken.yaml", "kind: DAG\n")
	write(t, env, "elsewhere/alone.yaml", "kind: Nothing\n")
	if v := validate("specs/dags"); v.Errors == 0 || v.Files != 2 || v.Verdict() != ops.Invalid {
		t.Errorf("of a folder: %+v", v)
	}
	if v := validate("specs/sessions"); v.Errors > 0 {
		t.Errorf("of another folder: %+v", v)
	}
	env.Prefix = "elsewhere"
	if v := validate("alone.yaml"); v.Files != 1 || v.Errors == 0 || v.Problems[0].Path != "alone.yaml" {
		t.Errorf("of a file outside of the specs: %+v", v)
	}
	if _, err := ops.Validate(t.Context(), env, ops.ValidateRequest{Paths: []string{"nowhere"}}); ops.CodeOf(err) != ops.Failure {
		t.Error(err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Validate(ctx, env, ops.ValidateRequest{})
		return err
	})
}

// TestMain is also the other process of doctor's test of locks.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "doctor" {
		if err := doctor.Hold(os.Args[len(os.Args)-1], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestDoctor(t *testing.T) {
	env := small(t)
	if r, err := ops.Doctor(t.Context(), env, ops.DoctorRequest{}); err != nil || r.Verdict != ops.OK || len(r.Findings) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, env, "specs/dags/broken.yaml", "kind: DAG\n")
	write(t, env, "state/dags/job.json", "not JSON")
	bad := func(f doctor.Finding) bool { return f.Level == doctor.Error }
	r, err := ops.Doctor(t.Context(), env, ops.DoctorRequest{})
	if err != nil || r.Verdict == ops.OK || !slices.ContainsFunc(r.Findings, bad) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = ops.Doctor(t.Context(), env, ops.DoctorRequest{Fix: true}); err != nil || r.Verdict != ops.Invalid {
		t.Errorf("repaired: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ops.Doctor(ctx, env, ops.DoctorRequest{}); ops.CodeOf(err) != ops.Interrupted {
		t.Errorf("canceled: %v", err)
	}
}

func TestBudget(t *testing.T) {
	env := open(t)
	talk := func() *ops.Text {
		talk := ops.StreamText("talk", strings.NewReader(strings.Repeat("word ", 1000)))
		return &talk
	}
	b, err := ops.Budget(t.Context(), env, ops.BudgetRequest{Agent: "engineer", Conversation: talk()})
	if err != nil || b.Agent != "engineer" || b.Percent == 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err = ops.Budget(t.Context(), env, ops.BudgetRequest{Agent: "engineer", Conversation: talk(), FailOn: 1}); ops.CodeOf(err) != b2code(b.Percent >= 1) {
		t.Errorf("%.1f %%, %v", b.Percent, err)
	}
	for want, q := range map[string]ops.BudgetRequest{"needs --agent": {}, "fail-on 101": {Agent: "engineer", FailOn: 101}, `agent "A B"`: {Agent: "A B"}} {
		_, err := ops.Budget(t.Context(), env, q)
		badRequest(t, err, want)
	}
	write(t, env, "specs/agents/architect.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: architect}\nspec: {nothing: 1}\n")
	_, err = ops.Budget(t.Context(), env, ops.BudgetRequest{Agent: "architect"})
	if failed, ok := errors.AsType[*ops.Error](err); !ok || failed.Code != ops.Invalid || !strings.Contains(err.Error(), "cannot be used as it is") {
		t.Error(err)
	}
}

// b2code is the code of a budget that is, or is not, exceeded.
func b2code(exceeded bool) ops.Code {
	if exceeded {
		return ops.Failure
	}
	return ops.OK
}

func TestAgents(t *testing.T) {
	env := open(t)
	write(t, env, "state/agent-status.json", `{"stranger": {"status": "working"}}`)
	r, err := ops.Agents(t.Context(), env)
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
	}
	if err != nil || !slices.Equal(names, []string{"architect", "engineer", "stranger"}) || r.Agents[2].Status != "working" {
		t.Errorf("%+v, %v", r.Agents, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Agents(ctx, env)
		return err
	})
}

func TestPlanChange(t *testing.T) {
	env := small(t)
	_, err := ops.PlanChange(t.Context(), env, ops.PlanChangeRequest{Base: "HEAD"})
	badRequest(t, err, "git repository")
	git(t, env, "init -q", "add .", "commit -qm First")
	write(t, env, "specs/dags/more.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: more}\n"+
		"spec: {session: work, nodes: [{name: do, run: [echo]}]}\n")
	git(t, env, "add .", "commit -qm Second")
	q := ops.PlanChangeRequest{Base: "HEAD~1", PullRequest: 7, Out: "plan.json"}
	r, err := ops.PlanChange(t.Context(), env, q)
	added := func(s mirror.PullStep) bool { return s.Ref == "dag/more" && s.Node == "do" }
	if err != nil || !slices.ContainsFunc(r.Pull.Steps, added) || r.Said != nil || r.Verdict != ops.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(env.Tree.Dir, "plan.json")); err != nil {
		t.Error(err)
	}
	r, err = ops.PlanChange(t.Context(), env, ops.PlanChangeRequest{From: "plan.json", Head: r.Head})
	if err == nil || r.Pull == nil || r.Pull.Number != 7 { // nothing says where GitHub is
		t.Errorf("%+v, %v", r, err)
	}
	if calls, err := ops.PlanGitHub(t.Context(), env); calls != nil || err == nil || !strings.Contains(err.Error(), "github.repo") {
		t.Errorf("%+v, %v", calls, err)
	}
}

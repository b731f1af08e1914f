package ops_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// TestWorkspaces lists, finds, compares and deletes the workspace of a run.
func TestWorkspaces(t *testing.T) {
	home := t.TempDir()
	env := small(t)
	env.Engine = engine.Run
	env.Tree.Getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
	if list, err := ops.Workspaces(t.Context(), env); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	write(t, env, "specs/agents/coder.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: coder}\n"+
		"spec: {workspace: clone, runner: {command: {argv: [sh, -c, 'echo new > made; echo done']}}}\n")
	write(t, env, "specs/dags/coded.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: coded}\n"+
		"spec: {session: work, nodes: [{name: make, agent: coder, prompt: make it}]}\n")
	write(t, env, "specs/sessions/work.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {title: Work}\n")
	for _, args := range []string{"init -q -b main .", "add .", "-c user.name=A -c user.email=a@b.org commit -qm start"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir = env.Tree.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	if _, err := ops.Run(t.Context(), env, ops.RunRequest{}); err != nil {
		t.Fatal(err)
	}
	list, err := ops.Workspaces(t.Context(), env)
	if err != nil || len(list) != 1 || list[0].State != "landed" || list[0].Owner != "dag/coded" || list[0].Bytes == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if w, err := ops.FindWorkspace(t.Context(), env, "make"); err != nil || w != list[0] {
		t.Errorf("%+v, %v", w, err)
	}
	_, err = ops.FindWorkspace(t.Context(), env, "other")
	badRequest(t, err, `no workspace is called "other"`)
	if diff, err := ops.DiffWorkspace(t.Context(), env, "make"); err != nil || !strings.Contains(string(diff), "\n+new\n") {
		t.Errorf("%s, %v", diff, err)
	}
	if err := os.WriteFile(filepath.Join(list[0].Dir, "later"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := ops.DropWorkspace(t.Context(), env, "make")
	if err != nil || r.Parked != "refs/reconcile/parked/"+list[0].Name {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(list[0].Dir); !os.IsNotExist(err) {
		t.Error(err)
	}
}

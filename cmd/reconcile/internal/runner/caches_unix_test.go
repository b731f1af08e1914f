//go:build unix

package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// The setup of a workspace finds what those before it left, unless it is of a commit that is only being checked. Then it is confined, also where the
// command of the run is not.
func TestCachesOfSetups(t *testing.T) {
	r := newRig(t, Options{})
	if r.o.Sandbox == nil {
		r.o.Sandbox = sandbox.NewHost(os.Getenv("PATH"))
	}
	confined := &settle.Sandbox{Sandbox: schemas.Sandbox{Required: true}}
	if _, err := r.o.Sandbox.Choose(&confined.Sandbox); err != nil {
		t.Skip(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	setup := func(kind string) string {
		t.Helper()
		a := &attempt{runner: r.Runner, job: &job{effect: settle.Effect{Key: "k", Agent: "a"}}, task: &settle.Command{Workspace: &settle.Workspace{Kind: kind, Setup: confined}}}
		defer a.unconfine()
		var out strings.Builder
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `ls "$XDG_CACHE_HOME"; echo x > "$XDG_CACHE_HOME/left"; echo x > "$0" || true`, outside)
		cmd.Dir, cmd.Env, cmd.Stdout = t.TempDir(), os.Environ(), &out
		if err := a.StartSetup(cmd, cmd.Dir); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out.String())
	}
	for _, c := range []struct{ kind, want string }{{schemas.WorkspaceClone, ""}, {schemas.WorkspaceClone, "left"}, {settle.CheckWorkspace, ""}, {settle.CheckWorkspace, ""}} {
		if got := setup(c.kind); got != c.want {
			t.Errorf("a setup in a %s finds %q", c.kind, got)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a setup wrote outside of its workspace")
	}
	if names, err := os.ReadDir(filepath.Join(r.dir, state.ProgramsDir)); err != nil || len(names) != 1 || names[0].Name() != setupsCache {
		t.Errorf("caches that stay: %v, %v", names, err)
	}
}

// What agents write is in no folder from which checks run programs, whatever an agent is called.
func TestCachesAreNoPrograms(t *testing.T) {
	if within(state.ProgramsDir, tools.Programs) || within(tools.Programs, state.ProgramsDir) {
		t.Errorf("%s and %s", tools.Programs, state.ProgramsDir)
	}
}

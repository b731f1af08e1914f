//go:build unix

package runner

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/state"
)

// TestProgramsAreBounded removes caches that nobody has used for long, and the oldest while all are too large.
func TestProgramsAreBounded(t *testing.T) {
	r := newRig(t, Options{})
	now := r.o.Now()
	add := func(name string, age time.Duration, size int) {
		t.Helper()
		dir := filepath.Join(r.dir, state.ProgramsDir, name)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "deep"), 0o755), os.WriteFile(filepath.Join(dir, "deep", "file"), make([]byte, size), 0o444),
			os.Chmod(filepath.Join(dir, "deep"), 0o555), os.Chtimes(dir, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	add("ancient", 40*24*time.Hour, 1)
	add("older", 3*time.Hour, 600)
	add("old", 2*time.Hour, 300)
	add("new", time.Hour, 200)
	left := func() (names []string) {
		entries, err := os.ReadDir(filepath.Join(r.dir, state.ProgramsDir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names
	}
	if err := r.sweepPrograms(programsAge, 500); err != nil || len(left()) != 4 {
		t.Fatalf("a runner that used none removed some: %v, %q", err, left())
	}
	if err := r.useProgram(path.Join(state.ProgramsDir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := r.sweepPrograms(programsAge, 500); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) != 2 || got[0] != "new" || got[1] != "old" {
		t.Errorf("left are %q", got)
	}
	add("large", 2*time.Hour, 10000)
	if err := r.sweepPrograms(programsAge, 500); err != nil || len(left()) != 3 {
		t.Errorf("they were measured twice on a day: %v, %q", err, left())
	}
}

// TestSessionsOfKilledRuns removes the session of a run that has a record, whoever ran it.
func TestSessionsOfKilledRuns(t *testing.T) {
	r := newRig(t, Options{})
	put := func(name string, data any) {
		t.Helper()
		text, err := json.Marshal(data)
		name = filepath.Join(r.dir, name)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const ended, open = "dags/d/a-0123456789abcdef-1", "dags/d/b-0123456789abcdef-1"
	put(sessionPath(ended), savedFile{Key: ended, Session: "s"})
	put(sessionPath(open), savedFile{Key: open, Session: "s"})
	put("state/runs/"+ended+".json", map[string]string{})
	if err := r.removeSessions(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, sessionPath(ended))); err == nil {
		t.Error("the session of an ended run is still there")
	}
	if _, err := os.Stat(filepath.Join(r.dir, sessionPath(open))); err != nil {
		t.Error("the session of an open run is gone:", err)
	}
}

// TestSecretsInOutputs: an output of an agent in the tree that has a secret of the environment fails the run, and is in no cache.
func TestSecretsInOutputs(t *testing.T) {
	for _, c := range []struct{ agent, outcome string }{{"engineer", "Failed"}, {"", "Succeeded"}} {
		r := newRig(t, Options{Environ: append(os.Environ(), "MY_TOKEN=canary-0123456789")})
		e := effect(theKey, "sh", "-c", "printf canary-; printf 'canary-%s' 0123456789 > out; echo done")
		e.Agent, e.Command().OutputFiles = c.agent, []string{"out"}
		if run := r.do(e); run.Outcome != c.outcome || (len(run.Outputs) > 0) == (c.agent != "") {
			t.Errorf("agent %q: %s %s %v", c.agent, run.Outcome, run.Message, run.Outputs)
		}
	}
}

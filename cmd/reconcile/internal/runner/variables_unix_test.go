//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// from is a command that prints its variables, and writes one of them as an output.
func from(script string, vars ...settle.Variable) settle.Effect {
	e := effect(theKey, "sh", "-c", script)
	e.Command().EnvFrom, e.Command().OutputFiles = vars, []string{"out"}
	return e
}

func TestVariablesAreReadAtTheStart(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "key"), []byte("canary-of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PLACE=canary-of-the-caller"}})
	caller := settle.Variable{Variable: "A", EnvSource: schemas.EnvSource{From: schemas.EnvFromCaller, Name: "PLACE"}}
	file := settle.Variable{Variable: "B", EnvSource: schemas.EnvSource{From: schemas.EnvFromFile, Path: "~/key"}}
	run := r.do(from(`echo "$A $B"; echo "${#A} ${#B}"; echo "$B" > out`, caller, file))
	if run.Outcome != schemas.OutcomeSucceeded || !strings.Contains(run.Output, "*** ***\n20 16\n") {
		t.Errorf("%s %s: %s", run.Outcome, run.Message, run.Output)
	}
	if len(run.Outputs) > 0 {
		t.Errorf("an output with a value is cached: %v", run.Outputs)
	}
	log, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(run.Log)))
	if err != nil || strings.Contains(string(log), "canary") {
		t.Errorf("the log: %v\n%s", err, log)
	}
}

func TestMissingVariablesKeepACommandFromItsStart(t *testing.T) {
	for _, c := range []struct {
		source schemas.EnvSource
		want   string
	}{
		{schemas.EnvSource{From: schemas.EnvFromCaller}, "variable A: A is not set in the environment of reconcile; set it there, then retry"},
		{schemas.EnvSource{From: schemas.EnvFromFile, Path: "none"}, "variable A: the file none does not exist; make it, or change path"},
		{schemas.EnvSource{From: schemas.EnvFromFile, Path: "."}, "variable A: . cannot be read"},
	} {
		r := newRig(t, Options{Environ: os.Environ()})
		run := r.do(from("echo started > started", settle.Variable{Variable: "A", EnvSource: c.source}))
		if run.Outcome != schemas.OutcomeFailed || !strings.Contains(run.Message, c.want) {
			t.Errorf("%v: %s %s", c.source, run.Outcome, run.Message)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "started")); err == nil {
			t.Errorf("%v: the command started", c.source)
		}
	}
}

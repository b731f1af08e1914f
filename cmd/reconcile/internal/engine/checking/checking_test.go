package checking

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

// Where a tool checks more than was asked for, findings elsewhere do not count, but a strange end does.
func TestFindingsElsewhere(t *testing.T) {
	j := tools.Job{Narrowed: true, Asked: []string{"a.go"}}
	for _, c := range []struct {
		exit   int
		want   checks.Outcome
		reason string
	}{
		{1, checks.Passed, "1 findings in other files"},
		{0, checks.Passed, "1 findings in other files"},
		{3, checks.Unknown, "exit code 3"},
	} {
		var check checks.Check
		ended := checks.Ended{Exit: c.exit, Report: checks.Report{Complete: true, Files: -1, Findings: []checks.Finding{{File: "b.go", Severity: checks.High}}}}
		in, elsewhere := j.Scope(ended.Report.Findings)
		ended.Report.Findings = in
		new(Checker).settle(&check, j, ended, len(elsewhere))
		if check.Outcome != c.want || !strings.Contains(check.Reason, c.reason) {
			t.Errorf("exit code %d: %s, %s", c.exit, check.Outcome, check.Reason)
		}
	}
}

// A finding in a file that is not there counts: the tool may have printed the name of one that was asked for so that another one was read.
func TestFindingsAstray(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	c := Checker{Root: t.TempDir(), Environ: os.Environ(), Timeout: time.Minute}
	put(t, c.Root, "b.x", "")
	for said, want := range map[string]checks.Outcome{"line.x": checks.Failed, "b.x": checks.Passed} {
		tool := tools.Discovered{Tool: "x", Program: sh, Role: tools.Role{Output: "gcc", Check: []string{filepath.Base(sh), "-c", "echo " + said + ":1:1: error: a; exit 1"}}}
		got, err := c.Run(t.Context(), []tools.Job{{Tool: tool, Narrowed: true, Asked: []string{"new\nline.x"}}})
		if err != nil || got[0].Outcome != want {
			t.Errorf("%s: %+v, %v", said, got, err)
		}
	}
}

// What a formatter finds that is merely installed is a note, unless it cannot read the file.
func TestPresumedFormatter(t *testing.T) {
	for _, c := range []struct {
		confidence tools.Confidence
		config     string
		severity   checks.Severity
		want       checks.Outcome
	}{
		{tools.Low, "", checks.Low, checks.Passed},
		{tools.Low, "", checks.High, checks.Failed},
		{tools.Low, "Makefile", checks.Low, checks.Failed},
		{tools.High, "pyproject.toml", checks.Low, checks.Failed},
	} {
		var check checks.Check
		j := tools.Job{Tool: tools.Discovered{Category: checks.Formatter, Confidence: c.confidence, Config: c.config}}
		new(Checker).settle(&check, j, checks.Ended{Exit: 1, Report: checks.Report{Complete: true, Files: -1, Findings: []checks.Finding{{File: "a.py", Severity: c.severity}}}}, 0)
		if check.Outcome != c.want {
			t.Errorf("%+v: %s %s", c, check.Outcome, check.Reason)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\n": "b", "": "", "\x1b[1;31mERROR\x1b[m no tests\n\x1b[0m\n\x1b[K": "ERROR no tests", "\x1b[0m": "",
		"x.js:1\nTypeError: no types\n    at x\n\nNode.js v20.20.2\n": "TypeError: no types", "Node.js v20.20.2": "Node.js v20.20.2",
		"[INFO] BUILD FAILURE\n[ERROR] no plugin\n[ERROR] \n[ERROR] [Help 1] http://example.org\n": "[ERROR] no plugin",
	} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A tool whose configuration names what it checks is shown the files of its positive control, where that configuration is not.
func TestScopedControl(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	tool := tools.Discovered{Tool: "x", Program: sh, Role: tools.Role{Check: []string{filepath.Base(sh), "-c", `test -n "$1" || exit 2; echo "$1:1:1: error: a"; exit 1`, "x", "{files}"},
		Whole: []string{}, Scoped: []string{"x.ini#x.files"}, Output: "gcc", Control: &tools.Control{Files: map[string]string{"a.x": ""}}}}
	c := Checker{Root: t.TempDir(), Environ: os.Environ(), Timeout: time.Minute}
	if check, err := c.Works(t.Context(), tool); err != nil || !check.Proved {
		t.Errorf("%+v, %v", check, err)
	}
}

// A tool whose cache believes times has an empty one in each run, wherever the user wants it.
func TestFreshCache(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("X_CACHE", t.TempDir())
	tool := tools.Discovered{Tool: "x", Program: sh, Role: tools.Role{Check: []string{filepath.Base(sh), "-c", `test ! -e "$X_CACHE/believed" || exit 0; mkdir -p "$X_CACHE"; echo >"$X_CACHE/believed"; echo "a.x:1:1: error: a"; exit 1`},
		Output: "gcc", Fresh: []string{"X_CACHE"}}}
	c := Checker{Root: t.TempDir(), Environ: os.Environ(), Timeout: time.Minute}
	for range 2 {
		if got, err := c.Run(t.Context(), []tools.Job{{Tool: tool}}); err != nil || got[0].Outcome != checks.Failed {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if entries, err := os.ReadDir(os.Getenv("X_CACHE")); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}

// What a check runs is built before, and where that fails nothing has passed.
func TestBuild(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Base(sh)
	for build, want := range map[string]checks.Outcome{"echo built > built": checks.Passed, "exit 2": checks.Failed, "true": checks.Failed} {
		tool := tools.Discovered{Tool: "x", Program: sh, Role: tools.Role{Build: []string{name, "-c", build}, Output: "tap", TestFiles: []string{"*"},
			Check: []string{name, "-c", `echo 1..1; if test -e built; then echo ok 1 a; else echo not ok 1 a; exit 1; fi`}}}
		c := Checker{Root: t.TempDir(), Environ: os.Environ(), Timeout: time.Minute}
		got, err := c.Run(t.Context(), []tools.Job{{Tool: tool}})
		if err != nil || got[0].Outcome != want || (build == "exit 2") != strings.HasPrefix(got[0].Reason, "does not build: "+name) {
			t.Errorf("%s: %+v, %v", build, got, err)
		}
	}
}

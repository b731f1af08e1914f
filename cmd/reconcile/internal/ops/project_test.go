package ops_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/checks"
)

// goProject is a Go module in a git repository, without a tree.
func goProject(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/shop\n\ngo 1.21\n"
	writeFiles(t, dir, files)
	gitIn(t, dir, "init", "-q", "-b", "main")
	commitAll(t, dir)
	t.Setenv("GOFLAGS", "")
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-qm", "step")
}

// projectEnv is the environment of a folder whose checks may run.
func projectEnv(dir string) ops.Env {
	getenv := func(name string) string {
		if name == ops.AllowVariable {
			return "checks"
		}
		return os.Getenv(name)
	}
	return ops.Env{Tree: tree.Config{Dir: dir, Now: time.Now, Getenv: getenv}, Caller: caller.Caller{Dir: dir, Getenv: getenv}}
}

func checkRequest(dir string) ops.CheckRequest {
	return ops.CheckRequest{Dir: dir, Timeout: 5 * time.Minute}
}

func TestToolsOfAProject(t *testing.T) {
	dir := goProject(t, map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	r, err := ops.Tools(t.Context(), projectEnv(dir), ops.ToolsRequest{CheckRequest: checkRequest(dir), Categories: []checks.Category{checks.TestFramework}})
	if err != nil || len(r.Tools) != 1 || r.Tools[0].Tool != "go test" || r.Tools[0].Program == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInspectAProject(t *testing.T) {
	dir := goProject(t, map[string]string{"main.go": "package main\n\nfunc main() {}\n", "other/o.go": "package  other\n"})
	env := projectEnv(dir)
	q := ops.InspectRequest{CheckRequest: checkRequest(dir), Only: []checks.Category{checks.Formatter, checks.TypeChecker}}
	r, err := ops.Inspect(t.Context(), env, q)
	if err != nil || r.Outcome != checks.Failed || r.Findings != 1 || r.BySeverity[checks.Low] != 1 || r.Verdict() != ops.NotReady {
		t.Fatalf("%+v, %v", r, err)
	}
	writeFiles(t, dir, map[string]string{"main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Printf(\"%d\", \"x\") }\n"})
	q.Changed = true
	r, err = ops.Inspect(t.Context(), env, q)
	if err != nil || *r.Files != 1 || r.Findings != 1 || r.Outcome != checks.Failed {
		t.Fatalf("what changed: %+v, %v", r, err)
	}
	f := r.Checks[0].Findings[0]
	if f.File != "main.go" || f.Line != 5 || f.Tool != "go vet" {
		t.Errorf("%+v", f)
	}
	q.Changed, q.Fix, q.Paths = false, true, []string{"other"}
	if r, err = ops.Inspect(t.Context(), env, q); err != nil || r.Outcome != checks.Passed || !slices.Contains(r.Repairs, checks.Repair{Tool: "gofmt", Outcome: checks.RepairRan}) {
		t.Errorf("after the repair: %+v, %v", r, err)
	}
}

// A failed test is diagnosed by what changed.
func TestDiagnosedTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs tests a dozen times")
	}
	code := "package shop\n\nfunc Price(n int) int { return 3 * n }\n"
	test := "package shop\n\nimport \"testing\"\n\nfunc TestPrice(t *testing.T) {\n\tif got := Price(2); got != 6 {\n\t\tt.Errorf(\"got %d, want %d\", got, 6)\n\t}\n}\n"
	dir := goProject(t, map[string]string{"price.go": code, "price_test.go": test, "far/far.go": "package far\n", "far/far_test.go": "package far\n\nimport \"testing\"\n\nfunc TestFar(t *testing.T) {}\n"})
	env := projectEnv(dir)
	run := func() *ops.Testing {
		t.Helper()
		q := ops.TestRequest{CheckRequest: checkRequest(dir), Diagnose: true}
		q.Changed = true
		r, err := ops.Test(t.Context(), env, q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	writeFiles(t, dir, map[string]string{"price.go": strings.Replace(code, "3 *", "4 *", 1)})
	r := run()
	if r.Outcome != checks.Failed || r.Counts.Run != 1 || len(r.Diagnoses) != 1 || r.Diagnoses[0].Blame != checks.Implementation {
		t.Errorf("the code changed: %+v", r)
	}
	if failed := r.Checks[0].Tests[0]; failed.Expected != "6" || failed.Actual != "8" || failed.File != "price_test.go" {
		t.Errorf("%+v", failed)
	}
	writeFiles(t, dir, map[string]string{"price.go": code, "price_test.go": strings.ReplaceAll(test, "6", "7")})
	if r = run(); len(r.Diagnoses) != 1 || r.Diagnoses[0].Blame != checks.OfTest {
		t.Errorf("the test changed: %+v", r.Diagnoses)
	}
	commitAll(t, dir)
	writeFiles(t, dir, map[string]string{"note_test.go": "package shop\n"})
	if r = run(); len(r.Diagnoses) != 1 || r.Diagnoses[0].Blame != checks.Known {
		t.Errorf("it failed before: %+v", r.Diagnoses)
	}
	// The tests of what used a removed file run, too.
	commitAll(t, dir)
	if err := os.Remove(filepath.Join(dir, "price.go")); err != nil {
		t.Fatal(err)
	}
	if r = run(); r.Outcome != checks.Failed || *r.Files != 1 {
		t.Errorf("the code is gone: %+v", r)
	}
}

func TestOverrideNeedsATree(t *testing.T) {
	dir := goProject(t, map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	if _, err := ops.OverrideCheck(t.Context(), projectEnv(dir), ops.OverrideRequest{Dir: dir, Finding: "abc", Reason: "x"}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("%v", err)
	}
}

// For a session its own files come first, and nothing but everything is checked.
func TestInspectASession(t *testing.T) {
	dir := goProject(t, map[string]string{"a.go": "package  shop\n", "b.go": "package  shop\n",
		"specs/sessions/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {title: Work}\n"})
	env := projectEnv(dir)
	q := ops.InspectRequest{CheckRequest: checkRequest(dir), Only: []checks.Category{checks.Formatter}}
	q.Session = "work"
	r, err := ops.Inspect(t.Context(), env, q)
	if err != nil || r.Session == nil || r.Session.Name != "work" || r.Findings != 2 || r.Session.Found != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Session.Files = []string{"b.go"}
	if own, others, n := r.BySession(); n != 1 || own[0].Findings[0].File != "b.go" || len(others[0].Findings) != 1 || others[0].Findings[0].File != "a.go" {
		t.Errorf("%+v, %+v, %d", own, others, n)
	}
	q.Paths = []string{"a.go"}
	if _, err := ops.Inspect(t.Context(), env, q); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("a part of a session: %v", err)
	}
	q.Paths, q.Session = nil, "wok"
	if _, err := ops.Inspect(t.Context(), env, q); ops.CodeOf(err) != ops.BadRequest || !strings.Contains(err.Error(), `did you mean "work"`) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestSlowChecksOfAChange(t *testing.T) {
	one := 1
	for _, c := range []struct {
		of   ops.Checked
		want string
	}{
		{ops.Checked{Files: &one, Seconds: 12.3}, "; it took 12s, where a change should take at most 5s"},
		{ops.Checked{Files: &one, Seconds: 4.9}, ""},
		{ops.Checked{Seconds: 60}, ""}, // of everything
	} {
		c.of.Outcome = checks.Passed
		if got := c.of.Evidence(); got.Outcome != checks.Passed || !strings.HasSuffix(got.Summary, c.want) || c.want == "" && strings.Contains(got.Summary, "took") {
			t.Errorf("%+v: %+v", c.of, got)
		}
	}
}

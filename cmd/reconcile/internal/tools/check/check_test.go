package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// project makes a module of the given files and returns a checker for it, with what it prints.
func project(t *testing.T, files map[string]string) (*checker, *strings.Builder) {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.test/m\n\ngo 1.26.0\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := new(strings.Builder)
	return &checker{root: root, out: out, env: cleanEnv(os.Environ())}, out
}

func TestGoTestCountsAndShowsWhatFails(t *testing.T) {
	c, out := project(t, map[string]string{
		"good/good_test.go": "package good\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Log(\"quiet\") }\n" +
			"func TestB(t *testing.T) { t.Skip(\"no tool: a\") }\n",
		"bad/bad_test.go": "package bad\nimport \"testing\"\nfunc TestC(t *testing.T) {\n" +
			"\tt.Run(\"sub\", func(t *testing.T) { t.Error(\"loud\") })\n}\nfunc TestD(t *testing.T) {}\n",
		"broken/broken_test.go": "package broken\nimport \"testing\"\nfunc TestE(t *testing.T) { undefined() }\n",
		"exits/exits_test.go": "package exits\nimport (\"os\"; \"testing\"; \"fmt\")\n" +
			"func TestF(t *testing.T) { fmt.Println(\"last words\"); os.Exit(3) }\n",
	})
	r := c.goTest(t.Context(), []string{"./..."})
	// Failed: TestC and TestC/sub, the package that does not build, and the one that exits (TestF, as go test sees it).
	if want := (tally{passed: 2, failed: 4, skipped: 1}); r.tally != want {
		t.Errorf("tally %+v, want %+v", r.tally, want)
	}
	if want := []string{"TestB (no tool: a)"}; !slices.Equal(r.skips, want) {
		t.Errorf("skipped %q, want %q", r.skips, want)
	}
	for _, want := range []string{"loud", "undefined: undefined", "last words", "ok ", "example.test/m/good"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not show %q:\n%s", want, out)
		}
	}
	if events := c.ran.String(); c.counted != r.tally || strings.Contains(events, "loud") || strings.Count(events, `"Action":"pass"`) != 3 {
		t.Errorf("kept of %+v: %s", c.counted, events)
	}
	if strings.Contains(out.String(), "quiet") || strings.Contains(out.String(), "=== ") {
		t.Errorf("the output shows what a passing test said:\n%s", out)
	}
}

func TestGoTestThatCannotStartIsAFailure(t *testing.T) {
	c, _ := project(t, map[string]string{"a.go": "package m\n"})
	r := c.goTest(t.Context(), []string{"-mod=nonsense", "./..."})
	if r.failed != 1 || !strings.Contains(r.text, "nonsense") {
		t.Errorf("%d failed, text %q; want 1 that names the flag", r.failed, r.text)
	}
}

func TestFormat(t *testing.T) {
	c, _ := project(t, map[string]string{
		"good.go": "package m\n\nvar a = 1\n", "bad/bad.go": "package m\nvar  a = 1\n", "torn/torn.go": "package",
		"testdata/x.go": "not go", ".hidden/x.go": "not go",
	})
	r := checkFormat(t.Context(), c)
	lines := strings.Split(strings.TrimSpace(r.text), "\n")
	if r.failed != 1 || len(lines) != 2 || !strings.HasPrefix(lines[0], "bad/bad.go: not formatted") ||
		!strings.HasPrefix(lines[1], "torn/torn.go: ") {
		t.Errorf("%d failed:\n%s", r.failed, r.text)
	}
}

func TestSummary(t *testing.T) {
	one := func(name string, r result) step {
		return step{name: name, run: func(context.Context, *checker) result { return r }}
	}
	out := new(strings.Builder)
	c := &checker{out: out}
	good := []step{
		one("a", passed()), one("b", result{tally: tally{passed: 7, skipped: 1}, tests: true}), one("c", excused("no compiler")),
	}
	if code := c.all(t.Context(), good); code != 0 || !strings.HasSuffix(out.String(), "\n8 passed, 0 failed\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	half := one("e", result{tally: tally{passed: 1, skipped: 1}, tests: true, excuse: "no emulator"})
	if c.all(t.Context(), []step{half}); !strings.Contains(out.String(), "part e") || !strings.Contains(out.String(), "no emulator") {
		t.Errorf("the output does not say what was left out of a step:\n%s", out)
	}
	if !strings.Contains(out.String(), "skip c") || !strings.Contains(out.String(), "no compiler") {
		t.Errorf("the output does not say what was left out and why:\n%s", out)
	}
	out.Reset()
	if code := c.all(t.Context(), append(good, one("d", failed("what is wrong")))); code != 1 ||
		!strings.HasSuffix(out.String(), "\n8 passed, 1 failed\n") || !strings.Contains(out.String(), "what is wrong") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestCommandsShowWhatFails(t *testing.T) {
	c, _ := project(t, map[string]string{"a.go": "package m\n\nfunc f() { return 1 }\n"})
	if r := commands([]string{"go", "vet", "./..."})(t.Context(), c); r.failed != 1 || !strings.Contains(r.text, "a.go:3") {
		t.Errorf("%d failed, text %q; want 1 that names the place", r.failed, r.text)
	}
	if r := commands([]string{"go", "version"})(t.Context(), c); r.passed != 1 || r.text != "" {
		t.Errorf("%d passed, text %q", r.passed, r.text)
	}
}

func TestRaceNeedsACompiler(t *testing.T) {
	c, _ := project(t, map[string]string{"a.go": "package m\n"})
	c.env = append(slices.Clone(c.env), "CC=no-such-compiler")
	if r := raceTests(t.Context(), c); r.failed != 0 || !strings.Contains(r.excuse, "no-such-compiler") {
		t.Errorf("%+v, want an excuse that names the compiler", r)
	}
	c.ci = true
	if r := raceTests(t.Context(), c); r.failed != 1 || !strings.Contains(r.text, "no-such-compiler") {
		t.Errorf("%+v, want a failure that names the compiler", r)
	}
}

func TestGitHubNeedsNpm(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("makes symbolic links")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() // has go, and no npm
	if err := os.Symlink(goTool, filepath.Join(path, "go")); err != nil {
		t.Fatal(err)
	}
	c, _ := project(t, map[string]string{"cmd/reconcile/internal/github/a_test.go": `package github
import ("os"; "testing")
func TestA(t *testing.T) {}
func TestB(t *testing.T) {
	if os.Getenv("RECONCILE_GITHUB_TESTS") != "required" { t.Skip() }
}`})
	t.Setenv("PATH", path)
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where nothing is installed
	step := onGitHub("./cmd/reconcile/internal/github/...")
	r := step(t.Context(), c)
	if r.failed != 0 || r.passed != 1 || r.skipped != 1 || !strings.Contains(r.excuse, "npm") {
		t.Errorf("%+v, want tests that pass, and an excuse that names npm", r)
	}
	c.ci = true
	if r := step(t.Context(), c); r.failed != 1 || !strings.Contains(r.text, "npm") {
		t.Errorf("%+v, want a failure that names npm", r)
	}
}

func TestChoose(t *testing.T) {
	chosen, err := choose(steps(), []string{"vet", "format"})
	if err != nil || len(chosen) != 2 || chosen[0].name != "format" || chosen[1].name != "vet" {
		t.Errorf("chose %v, %v; want format, then vet", chosen, err)
	}
	all, err := choose(steps(), nil)
	before, err2 := choose(steps(), []string{"quick"})
	named := func(name string) func(step) bool { return func(s step) bool { return s.name == name } }
	if err != nil || err2 != nil || slices.ContainsFunc(all, named("short")) || !slices.ContainsFunc(all, named("unit")) ||
		!slices.ContainsFunc(before, named("short")) || slices.ContainsFunc(before, named("unit")) {
		t.Errorf("all are %v, %v, the quick ones %v, %v; want unit, which covers short, and short", all, err, before, err2)
	}
	if _, err := choose(steps(), []string{"wet"}); err == nil || !strings.Contains(err.Error(), `"wet"`) {
		t.Errorf("error %v, want one that names the unknown step", err)
	}
}

func TestAgentsAreAskedFor(t *testing.T) {
	one := func(names ...string) step {
		chosen, err := choose(steps(), names)
		i := slices.IndexFunc(chosen, func(s step) bool { return s.name == "agents" })
		if err != nil || i < 0 {
			t.Fatalf("chose %v, %v; want agents among them", chosen, err)
		}
		return chosen[i]
	}
	c, _ := project(t, map[string]string{})
	c.ci = true
	if r := one().run(t.Context(), c); r.failed != 0 || !strings.Contains(r.excuse, "tools/check agents") {
		t.Errorf("%+v, want an excuse that says how to run the step", r)
	}
	t.Setenv("PATH", t.TempDir())           // has no npm
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where nothing is installed
	if r := one("agents").run(t.Context(), c); r.failed != 1 || !strings.Contains(r.text, "npm") {
		t.Errorf("%+v, want a failure that names npm", r)
	}
}

// The step checks runs in CI without being named.
func TestChecksRunInCI(t *testing.T) {
	run := skip(step{name: "checks", inCI: true, run: func(context.Context, *checker) result { return passed() }})
	if r := run(t.Context(), &checker{}); r.passed != 0 || !strings.Contains(r.excuse, "tools/check checks") {
		t.Errorf("%+v, want an excuse", r)
	}
	if r := run(t.Context(), &checker{ci: true}); r.passed != 1 {
		t.Errorf("in CI %+v, want it to run", r)
	}
}

// Go's tools are installed again when their version or the one of Go changes.
func TestMissingOfGo(t *testing.T) {
	if got := missingOfGo(t.TempDir()); len(got) != len(goTools) || got[0][2] != goTools[0] {
		t.Errorf("%q, want all of %q", got, goTools)
	}
}

func TestCleanEnv(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "RECONCILE_ROOT=/x", "GIT_DIR=.git", "GITHUB_SHA=1"})
	if want := []string{"PATH=/bin", "GITHUB_SHA=1"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// TestRacedTestsExist: a pattern that matches no test would pass.
func TestRacedTestsExist(t *testing.T) {
	var text []byte
	for _, folder := range partly {
		files, err := filepath.Glob("../../../../../" + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, data...)
		}
	}
	names := strings.Split(strings.TrimSuffix(strings.TrimPrefix(threaded, "^Test("), ")$"), "|")
	for _, name := range names {
		if !bytes.Contains(text, []byte("func Test"+name+"(t *testing.T)")) {
			t.Errorf("%s have no Test%s", partly, name)
		}
	}
}

func TestMemoryOfChecks(t *testing.T) {
	own, free := memoryFolder(t.TempDir())
	if own == "" {
		t.Skip("no file system in memory with enough room")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	root, pid := t.TempDir(), strconv.Itoa(ended.Process.Pid)
	left, freeLeft := memoryFolder(root)
	defer freeLeft()
	beside, freeBeside := memoryFolder(root)
	if left == own || beside == own || beside == left {
		t.Errorf("two roots, and two checks of one: %s, %s, %s", own, left, beside)
	}
	freeBeside()
	link := left + ".owner"
	if err := errors.Join(os.Mkdir(filepath.Join(left, "tree"), 0o700), os.Remove(link), os.Symlink(pid, link)); err != nil {
		t.Fatal(err)
	}
	again, _ := memoryFolder(root)
	if again != left {
		t.Errorf("the next check of a root has %q, want %q", again, left)
	}
	if _, err := os.Stat(filepath.Join(left, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a check left that ended: %v, want none", err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("the folder of a check that runs: %v", err)
	}
	free()
	if _, err := os.Lstat(own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that was freed: %v", err)
	}
}

//go:build unix

package runner

import (
	"encoding/json"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// surroundings is an environment that reconcile could run in.
func surroundings() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/someone", "LANG=C.UTF-8", "LC_ALL=C", "SHELL=/bin/zsh",
		"API_TOKEN=canary-4711", "RECONCILE_NODE=outer", "GIT_DIR=/elsewhere",
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	g := newRig(t, Options{Environ: surroundings()})
	e := effect(theKey, "env")
	e.Command().Env = []string{"GREETING=hello world", "LANG=de_DE.UTF-8", "RECONCILE_RUN=forged"}
	got := strings.Split(strings.TrimSpace(g.do(e).Output), "\n")
	slices.Sort(got)
	want := []string{
		"GREETING=hello world", "HOME=/home/someone", "LANG=de_DE.UTF-8", "PATH=" + os.Getenv("PATH"),
		"RECONCILE_CHAIN=" + g.marks.chain(theKey), "RECONCILE_ROOT=" + g.dir, "RECONCILE_RUN=" + theKey,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPathOfTheTaskCounts(t *testing.T) {
	g := newRig(t, Options{Environ: []string{}})
	g.write("bin/greet", "#!/bin/sh\necho own program")
	e := effect(theKey, "greet")
	e.Command().Env = []string{"PATH=bin:" + filepath.Join(g.dir, "bin")}
	if run := g.do(e); run.Output != "own program\n" {
		t.Errorf("%s %q %q", run.Outcome, run.Message, run.Output)
	}
	e.Command().Env = []string{"PATH=bin"} // relative entries are nobody's
	if run := g.do(e); run.Outcome != schemas.OutcomeFailed {
		t.Errorf("found through a relative entry of PATH: %q", run.Output)
	}
	if run := g.do(sh("exit 0")); run.Outcome != schemas.OutcomeSucceeded {
		t.Errorf("without PATH: %q", run.Message)
	}
}

func TestNeeds(t *testing.T) {
	g := newRig(t, Options{})
	zero := 0
	e := sh(`cat "$RECONCILE_NEEDS"; echo; env | grep ^RECONCILE_NEED_ | sort`)
	e.Command().Needs = map[string]settle.Need{
		"build": {
			State: "Succeeded", ExitCode: &zero, Result: map[string]any{"version": "1.4"}, Files: []string{"dist/app"},
		},
		"say":      {State: "Succeeded", Result: "plain text"},
		"huge":     {State: "Succeeded", Result: strings.Repeat("x", maxNeedEnv+1)},
		"nul":      {State: "Succeeded", Result: "a\x00b"},
		"left_out": {State: "Skipped"},
	}
	lines := strings.Split(strings.TrimSpace(g.do(e).Output), "\n")
	var got map[string]settle.Need
	log, err := os.ReadFile(filepath.Join(g.dir, ".reconcile/logs", theKey+".log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(log[:strings.IndexByte(string(log), '\n')], &got); err != nil {
		t.Fatal(err)
	}
	build := got["build"]
	if len(got) != 5 || build.Files[0] != "dist/app" || *build.ExitCode != 0 || got["left_out"].State != "Skipped" {
		t.Errorf("needs file: %v", got)
	}
	want := []string{`RECONCILE_NEED_BUILD_RESULT={"version":"1.4"}`, "RECONCILE_NEED_SAY_RESULT=plain text"}
	if env := lines[len(lines)-2:]; !slices.Equal(env, want) {
		t.Errorf("got %q, want %q", env, want)
	}
	g.end()
	if left, _ := os.ReadDir(filepath.Join(g.dir, state.WorkDir)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Results come from a status, where they are JSON text.
func TestResultsReachTheEnvironmentAsText(t *testing.T) {
	for raw, want := range map[string]string{
		`"1.0"`: "1.0", `1.0`: "1.0", `{"a":["b"]}`: `{"a":["b"]}`, `"{}"`: "{}", `""`: "", `null`: "null", `true`: "true",
		`"line\nline \u00e9"`: "line\nline é",
	} {
		needs := map[string]settle.Need{"say": {Result: json.RawMessage(raw)}}
		if env := needsEnv(needs); !slices.Equal(env, []string{"RECONCILE_NEED_SAY_RESULT=" + want}) {
			t.Errorf("%s: got %q, want %q", raw, env, want)
		}
	}
}

func TestNeedsInTheEnvironmentAreBounded(t *testing.T) {
	needs := map[string]settle.Need{}
	for i := range 100 {
		needs["n"+strings.Repeat("x", i)] = settle.Need{Result: strings.Repeat("r", maxNeedEnv)}
	}
	total := 0
	for _, kv := range needsEnv(needs) {
		_, v, _ := strings.Cut(kv, "=")
		total += len(v)
	}
	if total != maxNeedsEnv {
		t.Errorf("%d bytes, want %d", total, maxNeedsEnv)
	}
}

func TestWorkingDir(t *testing.T) {
	g := newRig(t, Options{})
	g.write("sub/here", "")
	if err := os.Symlink(t.TempDir(), filepath.Join(g.dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub", filepath.Join(g.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, message := range map[string]string{
		"": "", ".": "", "sub": "", "link": "",
		"missing": "workingDir missing does not exist", "sub/here": "is not a folder", "out": "escapes", "../x": "escapes",
		"/etc": "escapes",
	} {
		e := sh("ls")
		e.Command().Dir = dir
		run := g.do(e)
		if ok := run.Outcome == schemas.OutcomeSucceeded; ok != (message == "") || !strings.Contains(run.Message, message) {
			t.Errorf("%q: %s %q", dir, run.Outcome, run.Message)
		}
		if inSub := run.Output == "here\n"; inSub != (dir == "sub" || dir == "link") {
			t.Errorf("%q: ls says %q", dir, run.Output)
		}
	}
}

func TestStdin(t *testing.T) {
	g := newRig(t, Options{})
	long := strings.Repeat("0123456789abcde\n", 1<<16)
	for _, c := range []struct{ stdin, script, output string }{
		{"", "cat", ""},
		{"short", "cat", "short"},
		{long, "wc -c | tr -d ' '", "1048576\n"},
		{long, "echo not read", "not read\n"},
		{long, "head -c 5; exec <&-", "01234"},
	} {
		e := sh(c.script)
		e.Command().Stdin = c.stdin
		if run := g.do(e); run.Outcome != schemas.OutcomeSucceeded || run.Output != c.output {
			t.Errorf("%d bytes to %q: %s %q %q", len(c.stdin), c.script, run.Outcome, run.Message, run.Output)
		}
	}
}

func TestInsideRun(t *testing.T) {
	g := newRig(t, Options{})
	own := func(environs ...[]string) iter.Seq[[]string] { return slices.Values(environs) }
	environ := append(g.base, "RECONCILE_ROOT="+g.dir, "RECONCILE_RUN="+theKey, "RECONCILE_AGENT=coder",
		chainVar+"="+g.marks.chain(theKey))
	if in := InsideRun(g.dir, own(environ)); in == nil || in.Key != theKey || in.Agent != "coder" || in.Elsewhere {
		t.Errorf("got %+v", in)
	}
	if in := InsideRun(t.TempDir(), own(environ)); in == nil || !in.Elsewhere {
		t.Errorf("got %+v in another tree", in)
	}
	if in := InsideRun(g.dir, own(g.base)); in != nil {
		t.Errorf("inside of %+v without a mark", in)
	}
	if in := InsideRun(g.dir, own([]string{"RECONCILE_RUN=" + theKey})); in == nil || in.Elsewhere {
		t.Errorf("got %+v where only the key is left", in)
	}
	// A process that takes the marks off, or puts others on, is still a child of the run.
	forged := []string{"RECONCILE_ROOT=" + g.dir, "RECONCILE_RUN=forged", "RECONCILE_AGENT=architect"}
	for _, first := range [][]string{nil, forged, {"RECONCILE_ROOT=/elsewhere"}} {
		if in := InsideRun(g.dir, own(first, environ, nil)); in == nil || in.Key != theKey || in.Agent != "coder" || in.Elsewhere {
			t.Errorf("got %+v below %q", in, first)
		}
	}
	// A run of another tree inside of that run is inside of it, too.
	inner := newRig(t, Options{Environ: environ})
	deep := []string{"RECONCILE_ROOT=" + inner.dir, "RECONCILE_RUN=inner", chainVar + "=" + inner.marks.chain("inner")}
	for _, dir := range []string{g.dir, inner.dir} {
		if in := InsideRun(dir, own(deep)); in == nil || in.Key != "inner" || in.Elsewhere {
			t.Errorf("%s: got %+v", dir, in)
		}
	}
	if in := InsideRun(g.dir, own(deep, environ)); in == nil || in.Key != theKey {
		t.Errorf("got %+v of a nested run and its ancestors", in)
	}
}

// TestTokensProveRuns tests that only a process with the token of a run that lives acts as its agent.
func TestTokensProveRuns(t *testing.T) {
	g := newRig(t, Options{})
	file := path.Join(state.WorkDir, tokenName(theKey))
	g.write(file, digestToken("the token"))
	check := func(token string, proved bool) {
		t.Helper()
		environ := []string{"RECONCILE_ROOT=" + g.dir, "RECONCILE_RUN=" + theKey, "RECONCILE_AGENT=coder", "RECONCILE_SESSION=s", tokenVar + "=" + token}
		in := InsideRun(g.dir, slices.Values([][]string{environ}))
		if in == nil || in.Key != theKey || in.Unproved == proved || (in.Agent == "coder") != proved || (in.Session == "s") != proved {
			t.Errorf("with the token %q: %+v", token, in)
		}
	}
	check("the token", true)
	check("another", false)
	check("", false)
	if err := os.Remove(filepath.Join(g.dir, file)); err != nil {
		t.Fatal(err)
	}
	g.write(path.Join(file, "blocked"), "") // nothing that can be read
	check("the token", false)
}

func TestMarksNameOneRun(t *testing.T) {
	a, b := newMarks("/a", nil), newMarks("/b", nil)
	nested := newMarks("/b", []string{chainVar + "=" + a.chain("k")})
	for _, c := range []struct {
		name        string
		m           marks
		chain, key  string
		run, runner bool
	}{
		{"its own", a, a.chain("k"), "k", true, true},
		{"another key", a, a.chain("l"), "k", false, true},
		{"another tree", a, b.chain("k"), "k", false, false},
		{"another runner of the tree", newMarks("/a", nil), a.chain("k"), "k", true, false},
		{"nested", a, nested.chain("x"), "k", true, true},
		{"the inner of two", nested, nested.chain("x"), "x", true, true},
		{"the outer of two", b, nested.chain("x"), "k", false, false},
		{"nothing", a, "", "k", false, false},
		{"rubbish", a, "::a.b:..", "k", false, false},
	} {
		if run, runner := c.m.ofRun(c.chain, c.key), c.m.ofRunner(c.chain); run != c.run || runner != c.runner {
			t.Errorf("%s: run %v, runner %v", c.name, run, runner)
		}
	}
}

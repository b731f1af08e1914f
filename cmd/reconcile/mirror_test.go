package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// mirrored is a tree whose issues are on the GitHub of tests.
type mirrored struct {
	*testing.T
	rig   *githubtest.Rig
	dir   string
	issue int
	env   map[string]string
}

func newMirrored(t *testing.T) *mirrored {
	t.Helper()
	m := &mirrored{T: t, rig: githubtest.Start(t), dir: t.TempDir(),
		env: map[string]string{"GITHUB_TOKEN": githubtest.Token(githubtest.Bot), "HOME": t.TempDir()}}
	m.env[egress.AllowVariable] = m.rig.URL
	m.issue = m.rig.Issue(t, githubtest.Mona, "Health endpoint")
	const head = "apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n"
	writeFiles(t, m.dir, map[string]string{
		"reconcile.yaml": fmt.Sprintf(head, "Settings", "settings", fmt.Sprintf("{watch: {commitDelay: 50ms}, github: {repo: %s, mirror: true, baseURL: %q, pace: 0s}}",
			m.rig.Repo, strings.TrimSuffix(m.rig.URL, "/"))),
		"specs/sessions/health.yaml": fmt.Sprintf(head, "Session", "health", fmt.Sprintf("{issue: %d}", m.issue)),
		"specs/dags/checks.yaml":     fmt.Sprintf(head, "DAG", "checks", `{session: health, nodes: [{name: build, run: ["true"]}]}`),
		"specs/sessions/alone.yaml":  fmt.Sprintf(head, "Session", "alone", "{title: Alone}"),
	})
	return m
}

// do runs a command, and returns its exit code and what it prints.
func (m *mirrored) do(args ...string) (code int, out, complaints string) {
	m.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, engine: engine.Run,
		getenv: func(name string) string { return m.env[name] }}
	code = a.main(m.Context(), append([]string{"-C", m.dir}, args...))
	return code, stdout.String(), stderr.String()
}

// bodies are the comments on an issue.
func (m *mirrored) bodies(issue int) string {
	m.Helper()
	var all []struct{ Body string }
	m.rig.MustDo(m, githubtest.Mona, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", m.rig.Repo, issue), nil, &all)
	var out []string
	for _, c := range all {
		out = append(out, c.Body)
	}
	return strings.Join(out, "\n====\n")
}

// firstComment is the id of the first comment on the issue.
func (m *mirrored) firstComment() int64 {
	m.Helper()
	var all []struct{ ID int64 }
	m.rig.MustDo(m, githubtest.Mona, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", m.rig.Repo, m.issue), nil, &all)
	return all[0].ID
}

func (m *mirrored) issues() (titles []string) {
	m.Helper()
	var all []struct{ Title string }
	m.rig.MustDo(m, githubtest.Mona, "GET", "/repos/"+m.rig.Repo+"/issues?state=all", nil, &all)
	for _, i := range all {
		titles = append(titles, i.Title)
	}
	return titles
}

// writes are the calls since the last look that change something.
func (m *mirrored) writes() (calls []string) {
	for _, r := range m.rig.Journal() {
		if r.Method != "GET" {
			calls = append(calls, r.Method+" "+r.Path)
		}
	}
	return calls
}

func TestRunMirrors(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	if code, _, said := m.do("run"); code != 0 || !strings.Contains(said, "GitHub: 1 issue, 3 comments on "+m.rig.Repo) {
		t.Fatalf("%d: %s", code, said)
	}
	got := m.bodies(m.issue)
	for _, want := range []string{"### Session `health`: `Active`", "### DAG `checks`: `Succeeded`", "n0[\"build<br/>Succeeded\"]",
		"/" + m.rig.Repo + "/blob/HEAD/specs/dags/checks.yaml"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if titles := fmt.Sprint(m.issues()); !strings.Contains(titles, "Alone") || len(m.issues()) != 2 {
		t.Errorf("the issues are %s", titles)
	}
	m.writes()
	for range 2 {
		if code, _, said := m.do("run"); code != 0 || len(m.writes()) != 0 {
			t.Errorf("a run without news writes: %d, %s", code, said)
		}
	}
	if _, out, said := m.do("plan", "--github"); out != "nothing to do\n" || len(m.writes()) != 0 {
		t.Errorf("plan: %q, %s", out, said)
	}
}

func TestPlanGitHubPrintsCalls(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	m.env["GITHUB_TOKEN"] = ""
	if code, _, said := m.do("run"); code != 0 || !strings.Contains(said, "neither GITHUB_TOKEN nor GH_TOKEN is set") {
		t.Errorf("a run without a token: %d, %s", code, said)
	}
	if code, _, said := m.do("plan", "--github"); code != 1 || !strings.Contains(said, "neither GITHUB_TOKEN nor GH_TOKEN") {
		t.Errorf("a plan without a token: %d, %s", code, said)
	}
	m.env["GH_TOKEN"] = githubtest.Token(githubtest.Bot)
	code, out, said := m.do("plan", "--github")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	path := "POST /repos/" + m.rig.Repo
	if code != 0 || len(lines) != 5 || !strings.HasPrefix(lines[0], fmt.Sprintf("%s/issues/%d/comments ", path, m.issue)) ||
		!strings.HasPrefix(lines[2], path+"/labels ") || !strings.HasPrefix(lines[3], path+"/issues ") || strings.Contains(out, "\x1b") {
		t.Errorf("%d: %s\n%s", code, out, said)
	}
	if calls := m.writes(); len(calls) != 0 || len(m.issues()) != 1 {
		t.Errorf("a plan calls %q", calls)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "state/github")); err == nil {
		t.Error("a plan wrote records")
	}
	if _, out, _ := m.do("plan", "--github", "-o", "json"); !strings.Contains(out, `"method": "POST"`) || !strings.Contains(out, `"body": {`) {
		t.Errorf("as JSON: %s", out)
	}
	if code, _, said := m.do("plan", "--github", "--base", "HEAD"); code != 2 || !strings.Contains(said, "leave out the other flags") {
		t.Errorf("%d: %s", code, said)
	}
}

// TestPlanGitHubThatCannotLook: what cannot be looked at is no reason to say that nothing is to be done.
func TestPlanGitHubThatCannotLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault githubtest.Fault
		want  string
	}{
		"no issues": {githubtest.Fault{Status: 410, Body: `{"message":"Issues has been disabled in this repository."}`,
			Header: http.Header{"Content-Type": {"application/json"}}}, "turn them on in its settings"},
		"deleted": {githubtest.Fault{Status: 410}, "name another one in the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMirrored(t)
			if code, _, said := m.do("run"); code != 0 {
				t.Fatalf("%d: %s", code, said)
			}
			m.rig.DeleteComment(t, githubtest.Bot, m.firstComment())
			writeFiles(t, m.dir, map[string]string{"specs/sessions/health.yaml": fmt.Sprintf(
				"apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: health}\nspec: {issue: %d, title: Another}\n", m.issue)})
			m.rig.Fail(99, "", fmt.Sprintf("/issues/%d", m.issue), c.fault)
			code, out, said := m.do("plan", "--github")
			if code != 1 || strings.Contains(out, "nothing to do") || !strings.Contains(said, c.want) {
				t.Errorf("%d: %q, %s", code, out, said)
			}
		})
	}
}

func TestMirrorThatFailsKeepsNoRunFromItsWork(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	m.env["RECONCILE_MIRROR_KEY"] = "short"
	if code, _, said := m.do("run"); code != 0 || !strings.Contains(said, "RECONCILE_MIRROR_KEY has 5 characters") {
		t.Errorf("%d: %s", code, said)
	}
	m.env["RECONCILE_MIRROR_KEY"] = "from the environment"
	m.env["GITHUB_TOKEN"] = "nobody's"
	if code, _, said := m.do("run"); code != 0 || !strings.Contains(said, "mirror to GitHub: ") || strings.Contains(said, "nobody's") {
		t.Errorf("%d: %s", code, said)
	}
	m.env["GITHUB_TOKEN"] = githubtest.Token(githubtest.Bot)
	if code, _, said := m.do("run"); code != 0 || !strings.Contains(said, "3 comments") {
		t.Errorf("%d: %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "state/github/keys.json")); err == nil {
		t.Error("there is a key in the tree beside the one of the environment")
	}
}

// TestCommitHasTheRecords: what stands on GitHub is on record in the commit of the run, so that another clone knows it.
func TestCommitHasTheRecords(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	git := func(args ...string) string {
		t.Helper()
		out, err := gitIn(t, m.dir, args...)
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "specs")
	if code, _, said := m.do("run", "--commit"); code != 0 {
		t.Fatalf("%d: %s", code, said)
	}
	if got := git("ls-files", "state/github"); !strings.Contains(got, fmt.Sprintf("state/github/issue-%d.json", m.issue)) ||
		!strings.Contains(got, "state/github/keys.json") || !strings.Contains(got, "state/github/objects/sessions/alone.json") {
		t.Errorf("on record are\n%s", got)
	}
	if got := git("status", "--porcelain"); got != "" {
		t.Errorf("not committed: %s", got)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git("clone", "-q", ".", clone)
	m.dir = clone
	m.writes()
	if code, _, said := m.do("run"); code != 0 || len(m.writes()) != 0 {
		t.Errorf("a clone writes again: %d, %s", code, said)
	}
}

// TestPushHasTheRecords: of two clones that push, each knows what the other has put on GitHub, and one at a time does so.
func TestPushHasTheRecords(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	git := func(dir string, args ...string) string {
		t.Helper()
		out, err := gitIn(t, dir, args...)
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	origin := filepath.Join(t.TempDir(), "origin.git")
	git(m.dir, "init", "-q", "-b", "main")
	git(m.dir, "add", "-A")
	git(m.dir, "commit", "-q", "-m", "specs")
	git(m.dir, "clone", "-q", "--bare", ".", origin)
	git(m.dir, "remote", "add", "origin", origin)
	git(m.dir, "fetch", "-q", "origin")
	git(m.dir, "branch", "-q", "-u", "origin/main")
	other := filepath.Join(t.TempDir(), "other")
	git(m.dir, "clone", "-q", origin, other)
	if code, _, said := m.do("run", "--push"); code != 0 || !strings.Contains(said, "3 comments") {
		t.Fatalf("%d: %s", code, said)
	}
	if got := git(origin, "ls-tree", "-r", "--name-only", "main"); !strings.Contains(got, "state/github/objects/sessions/alone.json") {
		t.Errorf("pushed are\n%s", got)
	}
	if got := git(origin, "for-each-ref", "refs/reconcile"); got != "" {
		t.Errorf("claims stay: %s", got)
	}
	m.writes()
	m.dir = other
	if code, _, said := m.do("run", "--push"); code != 0 || len(m.writes()) != 0 {
		t.Errorf("another clone writes again: %d, %s", code, said)
	}
}

// TestWatchMirrors has a watcher mirror what changes.
func TestWatchMirrors(t *testing.T) {
	t.Parallel()
	m := newMirrored(t)
	rd, wr := io.Pipe()
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: wr, now: time.Now, engine: engine.Run,
		getenv: func(name string) string { return m.env[name] }}
	done := make(chan int, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- a.main(ctx, []string{"-C", m.dir, "run", "--watch"})
		_ = wr.Close()
	}()
	said := waitFor(t, rd, "3 comments on ")
	writeFiles(t, m.dir, map[string]string{"specs/dags/checks.yaml": `{apiVersion: reconcile.dev/v1alpha1, kind: DAG, metadata: {name: checks}, spec: {session: health, nodes: [{name: build, run: ["false"]}]}}`})
	for !strings.Contains(m.bodies(m.issue), "### DAG `checks`: `Failed`") {
		said += waitFor(t, rd, "GitHub: ")
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, rd) }()
	if code := <-done; code != 4 {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

// waitFor reads until a text has come, and returns all that came.
func waitFor(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var all strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(all.String(), text); {
		n, err := r.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			t.Fatalf("no %q came:\n%s", text, all.String())
		}
	}
	return all.String()
}

func gitIn(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

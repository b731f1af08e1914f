package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
)

// maker is a GitHub that makes commits in a bare repository, past its hooks, and nothing else. What it is asked is what
// the tests of the client hold to GitHub's description.
type maker struct {
	*testing.T
	bare string

	mu      sync.Mutex
	before  func()        // once, before the next commit
	lose    bool          // the answer to the next commit
	answer  func() string // instead of the next commit
	commits int           // asked for
}

func (k *maker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var asked struct {
		Variables struct {
			Input struct {
				Branch  struct{ BranchName string }
				Head    string `json:"expectedHeadOid"`
				Message struct{ Headline, Body string }
				Changes struct {
					Additions []struct {
						Path     string
						Contents []byte
					}
					Deletions []struct{ Path string }
				} `json:"fileChanges"`
			}
		}
	}
	if r.URL.Path != "/graphql" || r.Header.Get("Authorization") != "Bearer some-token" {
		http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		k.Error(err)
	}
	k.commits++
	if k.before != nil {
		k.before()
		k.before = nil
	}
	in, index := asked.Variables.Input, filepath.Join(k.TempDir(), "index")
	git := func(stdin string, args ...string) string { return k.git(index, stdin, args...) }
	ref := "refs/heads/" + in.Branch.BranchName
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch {
	case k.answer != nil:
		fmt.Fprint(w, k.answer())
		return
	case git("", "rev-parse", ref) != in.Head:
		fmt.Fprint(w, `{"data":null,"errors":[{"type":"STALE_DATA","message":"Expected branch to point to another commit"}]}`)
		return
	}
	git("", "read-tree", in.Head)
	for _, f := range in.Changes.Additions {
		git("", "update-index", "--add", "--cacheinfo", "100644,"+git(string(f.Contents), "hash-object", "-w", "--stdin")+","+f.Path)
	}
	for _, f := range in.Changes.Deletions {
		git("0 "+strings.Repeat("0", 40)+"\t"+f.Path+"\n", "update-index", "--index-info")
	}
	message := in.Message.Headline + "\n\n" + in.Message.Body
	oid := git(message, "commit-tree", "-p", in.Head, git("", "write-tree"))
	git("", "update-ref", ref, oid, in.Head)
	if k.lose {
		k.lose = false
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, `{"data":{"createCommitOnBranch":{"commit":{"oid":%q}}}}`, oid)
}

// git runs git in the bare repository, as GitHub commits.
func (k *maker) git(index, stdin string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", k.bare}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_NAME=bot", "GIT_AUTHOR_EMAIL=bot@example.org",
		"GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.Errorf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// protected is a tree whose remote takes no push to its branch, and a GitHub that makes commits there.
func protected(t *testing.T, via string) (*crowd, *maker) {
	t.Helper()
	k := &maker{T: t, bare: filepath.Join(t.TempDir(), "hub.git")}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	c := newCrowd(t, map[string]string{
		"reconcile.yaml": fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n"+
			"spec: {git: {push: true, via: %s}, github: {repo: octo/widgets, baseURL: %q, pace: 0s}}\n", via, server.URL),
		"specs/s.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: s}\nspec: {owner: ada}\n",
		"specs/d.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\nspec:\n  session: s\n" +
			"  nodes:\n    - {name: one, run: [echo, one]}\n    - {name: two, run: [echo, two], needs: [one]}\n",
	})
	c.env = append(c.env, "GITHUB_TOKEN=some-token", "GIT_CONFIG_NOSYSTEM=1", egress.AllowVariable+"="+server.URL)
	c.git("init", "-q", "-b", "main")
	c.git("config", "user.name", "Ada")
	c.git("config", "user.email", "ada@example.org")
	c.git("add", ".")
	c.git("commit", "-qm", "Declare")
	c.git("clone", "-q", "--bare", ".", k.bare)
	c.git("remote", "add", "origin", k.bare)
	hook := "#!/bin/sh\nif [ $1 = refs/heads/main ]; then echo only signed commits >&2; exit 1; fi\n"
	if err := os.WriteFile(filepath.Join(k.bare, "hooks", "update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	return c, k
}

func (c *crowd) git(args ...string) string {
	c.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// same checks that the branch is where the remote's is, that GitHub made the commit, and that nothing is left to do.
func (c *crowd) same(k *maker) {
	c.Helper()
	head := c.git("rev-parse", "HEAD")
	if remote := c.git("-C", k.bare, "rev-parse", "main"); remote != head {
		c.Errorf("here is %s, and there %s", head, remote)
	}
	if by := c.git("log", "-1", "--format=%cn"); by != "GitHub" {
		c.Errorf("the commit is %s's", by)
	}
	if status := c.git("status", "--porcelain"); status != "" {
		c.Errorf("git status: %s", status)
	}
	var out struct{ Ran, Wrote int }
	if text := c.run("-o", "json"); json.Unmarshal([]byte(text), &out) != nil || out.Ran != 0 || out.Wrote != 0 {
		c.Errorf("the next run did something: %s", text)
	}
	if refs := c.git("-C", k.bare, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		c.Errorf("left on the remote: %s", refs)
	}
}

// put commits a file on the remote, as somebody who may.
func (k *maker) put(t *testing.T, path, text string) {
	index := filepath.Join(t.TempDir(), "index")
	head := k.git(index, "", "rev-parse", "main")
	k.git(index, "", "read-tree", head)
	k.git(index, "", "update-index", "--add", "--cacheinfo", "100644,"+k.git(index, text, "hash-object", "-w", "--stdin")+","+path)
	oid := k.git(index, "theirs", "commit-tree", "-p", head, k.git(index, "", "write-tree"))
	k.git(index, "", "update-ref", "refs/heads/main", oid)
}

func TestCommitsByGitHub(t *testing.T) {
	t.Parallel()
	for _, via := range []string{"git", "github"} { // where git may not push, and where the setting says so
		c, k := protected(t, via)
		var out struct {
			Commit       string
			Pushed, Took bool
		}
		text := c.run("-o", "json")
		if err := json.Unmarshal([]byte(text), &out); err != nil || !out.Pushed || out.Took || out.Commit != c.git("rev-parse", "HEAD") {
			t.Errorf("via %s: %v: %s", via, err, text)
		}
		if k.commits == 0 || c.git("log", "-1", "--format=%(trailers:key=Reconcile-Input,valueonly)") == "" {
			t.Errorf("via %s: %d commits, and the last one says: %s", via, k.commits, c.git("log", "-1"))
		}
		c.same(k)
		made := k.commits
		k.put(t, "specs/d.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: e}\nspec:\n  session: s\n"+
			"  nodes:\n    - {name: one, run: [echo, one]}\n")
		if text := c.run(); k.commits == made || !strings.Contains(text, " and pushed, pulled commits of others\n") {
			t.Errorf("via %s: what changed later was not committed, or nothing else: %s", via, text)
		}
	}
}

// TestCommitsByGitHubWhenItFails: somebody was first, and the answer got lost. Nothing runs twice, and nothing is lost.
func TestCommitsByGitHubWhenItFails(t *testing.T) {
	t.Parallel()
	for what, fail := range map[string]func(*crowd, *maker){
		"somebody was first": func(c *crowd, k *maker) {
			k.before = func() { k.put(t, "theirs.txt", "theirs") }
		},
		"the answer got lost": func(_ *crowd, k *maker) { k.lose = true },
	} {
		c, k := protected(t, "github")
		fail(c, k)
		c.run()
		c.same(k)
		trees := strings.Fields(c.git("log", "--format=%T")) // a busy machine pushes the two records apart
		slices.Sort(trees)
		if len(slices.Compact(slices.Clone(trees))) != len(trees) {
			t.Errorf("%s: a commit was made again: %s", what, c.git("log", "--stat"))
		}
		if records, err := filepath.Glob(filepath.Join(c.dir, "state/runs/dags/d/*.json")); err != nil || len(records) != 2 {
			t.Errorf("%s: the runs are %q", what, records)
		}
	}
}

// TestCommitsByGitHubRefused: what is in the way is said, with what to do, and what was recorded is kept.
func TestCommitsByGitHubRefused(t *testing.T) {
	t.Parallel()
	c, k := protected(t, "git")
	k.answer = func() string {
		return `{"data":null,"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`
	}
	fails := func(want ...string) {
		t.Helper()
		out, err := c.command().CombinedOutput()
		for _, w := range want {
			if err == nil || !strings.Contains(string(out), w) {
				t.Errorf("%v, no %q in\n%s", err, w, out)
			}
		}
	}
	fails("hook declined", "by GitHub's API", "Resource not accessible by integration", "is committed here")
	if c.git("rev-list", "--count", "HEAD") != "2" {
		t.Error("what was recorded is not committed")
	}
	k.answer = nil
	c.run()
	c.same(k)

	person, _ := protected(t, "github")
	person.write("mine.txt", "mine\n")
	person.git("add", "mine.txt")
	person.git("commit", "-qm", "Of my own")
	c = person
	fails("(Of my own) is not reconcile's own, and only a push keeps its author")

	person.env = append(person.env, "GITHUB_TOKEN=")
	fails("git.via: github needs GITHUB_TOKEN", "nothing was run")
}

// TestCommitsByGitHubNeverFirst: who finds the branch elsewhere each time gives up, and keeps what was recorded.
func TestCommitsByGitHubNeverFirst(t *testing.T) {
	t.Parallel()
	c, k := protected(t, "github")
	k.answer = func() string {
		return `{"data":null,"errors":[{"type":"STALE_DATA","message":"Expected branch to point to another commit"}]}`
	}
	cmd := c.command()
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != exitBusy {
		t.Errorf("%v, want exit %d\n%s", err, exitBusy, out)
	}
	k.answer = nil
	c.run()
	if head := c.git("rev-parse", "HEAD"); c.git("-C", k.bare, "rev-parse", "main") != head || c.git("rev-list", "--count", "HEAD") != "2" {
		t.Errorf("the next run left %s", c.git("log", "--oneline", "--all"))
	}
}

func (c *crowd) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.Fatal(err)
	}
}

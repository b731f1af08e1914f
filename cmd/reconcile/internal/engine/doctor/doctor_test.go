package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// show prints findings that are not ok.
func show(fs []Finding) string {
	var b strings.Builder
	for _, f := range fs {
		if f.Level != OK {
			fmt.Fprintf(&b, "%s %s: %s (%s; %v)\n", f.Level, f.Name, f.Detail, f.Fix, f.Fixable)
		}
	}
	return b.String()
}

// want checks that there is a finding of that name and level whose detail contains text.
func want(t *testing.T, fs []Finding, name string, level Level, text string) Finding {
	t.Helper()
	for _, f := range fs {
		if f.Name == name && f.Level == level && strings.Contains(f.Detail, text) {
			return f
		}
	}
	t.Errorf("no finding %s %s %q:\n%s", level, name, text, show(fs))
	return Finding{}
}

func wantHealthy(t *testing.T, fs []Finding) {
	t.Helper()
	for _, c := range checks {
		if !slices.ContainsFunc(fs, func(f Finding) bool { return f.Name == c.name }) {
			t.Errorf("the check %s found nothing, not even that all is well", c.name)
		}
	}
	if bad := show(fs); bad != "" {
		t.Errorf("findings in a healthy tree:\n%s", bad)
	}
}

func TestHealthyTree(t *testing.T) {
	dir, e := newTree(t)
	wantHealthy(t, Check(t.Context(), e))
	if out, err := e.git(t.Context(), "status", "--porcelain"); err != nil || out != "" {
		t.Errorf("the examination left %q in %s: %v", out, dir, err)
	}
	wantHealthy(t, Fix(t.Context(), e))
}

func TestNothingIsWrittenWhereNoTreeIs(t *testing.T) {
	dir := t.TempDir()
	fs := Check(t.Context(), env(dir))
	want(t, fs, "tree", Warn, "no folder specs")
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the examination left %v, %v", names, err)
	}
}

func TestMissingFolder(t *testing.T) {
	want(t, Fix(t.Context(), env(filepath.Join(t.TempDir(), "nowhere"))), "tree", Error, "cannot be opened")
}

func TestInvalidSpec(t *testing.T) {
	dir, e := newTree(t)
	must(t, put(dir, "specs/sessions/bad.yaml", "kind: [\n"))
	fs := Check(t.Context(), e)
	if f := want(t, fs, "tree", Error, "1 error,"); f.Fixable || !f.Invalid {
		t.Errorf("%+v, want a finding about specs that --fix leaves alone", f)
	}
	if worst, invalid := Worst(fs); worst != Error || !invalid {
		t.Errorf("worst %s, invalid %v", worst, invalid)
	}
}

func TestKilledRun(t *testing.T) {
	dir, e := newTree(t)
	must(t, murder(dir))
	fs := Check(t.Context(), e)
	want(t, fs, "journals", Warn, "1 result and 1 effect without")
	want(t, fs, "locks", Warn, "corpse lock: state/agent-status.json.lock")
	want(t, fs, "litter", Warn, "1 temporary file ")
	if out, _ := e.git(t.Context(), "status", "--porcelain"); out != "" {
		t.Errorf("looking changed %q", out)
	}

	reaped := ""
	e.Reap = func(_ context.Context, orphans []state.Orphan) error {
		for _, o := range orphans {
			reaped += o.Key
		}
		return nil
	}
	fs = Fix(t.Context(), e)
	if bad := show(fs); bad != "" {
		t.Errorf("after the repair:\n%s", bad)
	}
	want(t, fs, "journals", OK, "repaired: process")
	if !strings.HasSuffix(reaped, "-2") {
		t.Errorf("reaped %q, want the effect without a result", reaped)
	}
	if _, err := os.Stat(filepath.Join(dir, "state/runs", victimKey+".json")); err != nil {
		t.Errorf("the result that the killed run recorded is gone: %v", err)
	}
}

func TestLogOfAForgottenRun(t *testing.T) {
	dir, e := newTree(t)
	log := state.LogPath("dags/gone/build-0123456789abcdef-1")
	must(t, put(dir, log, "hello\n"))
	if f := want(t, Check(t.Context(), e), "litter", Warn, "1 log of runs that nothing tells of any more: "+log); !f.Fixable {
		t.Errorf("%+v, want a finding that --fix repairs", f)
	}
	wantHealthy(t, Fix(t.Context(), e))
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(log))); !os.IsNotExist(err) {
		t.Errorf("the log is left: %v", err)
	}
}

func TestRepairThatFails(t *testing.T) {
	dir, e := newTree(t)
	must(t, murder(dir))
	for name, reap := range map[string]func(context.Context, []state.Orphan) error{
		"the next run of reconcile ends them": nil,
		"it does not die":                     func(context.Context, []state.Orphan) error { return errors.New("it does not die") },
	} {
		e.Reap = reap
		want(t, Fix(t.Context(), e), "journals", Warn, name)
	}
}

func TestDamagedState(t *testing.T) {
	dir, e := newTree(t)
	must(t, put(dir, "state/sessions/health.json", "<<<<<<< HEAD\n"))
	must(t, put(dir, "state/clarifications/issue-1.json", `{"torn`))
	fs := Check(t.Context(), e)
	if f := want(t, fs, "state", Error, "state/sessions/health.json"); !f.Fixable {
		t.Errorf("%+v, want one that --fix repairs", f)
	}
	if f := want(t, fs, "state", Error, "state/clarifications/issue-1.json:1:"); !f.Fixable {
		t.Errorf("%+v, want one that --fix repairs", f)
	}
	must(t, put(dir, "state/agent-status.json", `{"torn`))
	if f := want(t, Check(t.Context(), e), "state", Error, "agent-status.json"); f.Fixable {
		t.Errorf("%+v: others write that file, too", f)
	}
	fs = Fix(t.Context(), e)
	want(t, fs, "damaged", Warn, ".reconcile/damaged/state/sessions/health.json.1")
	want(t, fs, "damaged", Warn, ".reconcile/damaged/state/clarifications/issue-1.json.1")
	want(t, fs, "state", Error, "agent-status.json")
	if text, err := os.ReadFile(filepath.Join(dir, ".reconcile/damaged/state/sessions/health.json.1")); err != nil ||
		string(text) != "<<<<<<< HEAD\n" {
		t.Errorf("set aside %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state/agent-status.json")); err != nil {
		t.Errorf("a shared file was touched: %v", err)
	}
}

func TestGit(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(dir string) error
		level Level
		text  string
	}{
		"no repository": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, ".git")) }, Warn, "no git repository"},
		"empty ref":     {func(dir string) error { return put(dir, ".git/refs/heads/main", "") }, Error, "HEAD names no commit"},
		"torn index":    {func(dir string) error { return put(dir, ".git/index", "DIRC") }, Error, "index cannot be read"},
		"missing objects": {func(dir string) error {
			objects, err := filepath.Glob(filepath.Join(dir, ".git/objects/??/*"))
			for _, o := range objects {
				err = errors.Join(err, os.Remove(o))
			}
			return err
		}, Error, "git fsck"},
		"old lock": {func(dir string) error {
			name := filepath.Join(dir, ".git/index.lock")
			old := time.Now().Add(-time.Hour)
			return errors.Join(put(dir, ".git/index.lock", ""), os.Chtimes(name, old, old))
		}, Warn, "index.lock is 1h0m"},
		"pending commit": {func(dir string) error { return put(dir, ".git/reconcile/pending.json", "{}") }, Warn, "interrupted"},
		"split index": {func(dir string) error {
			e := env(dir)
			_, err := e.git(context.Background(), "config", "core.splitIndex", "true")
			return err
		}, Warn, "a split index"},
		"scratch in git": {func(dir string) error {
			e := env(dir)
			err := put(dir, ".reconcile/x", "")
			_, err2 := e.git(context.Background(), "add", "-f", ".reconcile/x")
			return errors.Join(err, err2)
		}, Warn, ".reconcile/x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, e := newTree(t)
			must(t, c.harm(dir))
			want(t, checkGit(t.Context(), &e), "", c.level, c.text)
		})
	}
}

func TestGitOfAnotherUser(t *testing.T) {
	_, e := newTree(t)
	git := e.Git
	e.Git = func(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd {
		cmd := git(ctx, dir, environ, args...)
		cmd.Env = append(cmd.Env, "GIT_TEST_ASSUME_DIFFERENT_OWNER=1")
		return cmd
	}
	want(t, checkGit(t.Context(), &e), "", Warn, "belongs to another user")
}

func TestGitBranchWithoutCommits(t *testing.T) {
	_, e := newTree(t)
	if _, err := e.git(t.Context(), "symbolic-ref", "HEAD", "refs/heads/unborn"); err != nil {
		t.Fatal(err)
	}
	if bad := show(checkGit(t.Context(), &e)); bad != "" {
		t.Errorf("findings on a branch without commits:\n%s", bad)
	}
}

func TestPendingCommitIsSettled(t *testing.T) {
	dir, e := newTree(t)
	must(t, put(dir, ".git/reconcile/pending.json", "{}"))
	e.Settle = func(context.Context) error { return os.Remove(filepath.Join(dir, ".git/reconcile/pending.json")) }
	if bad := show(Fix(t.Context(), e)); bad != "" {
		t.Errorf("after the repair:\n%s", bad)
	}
}

// TestLocksThatDoNotWork: the other process says that it has the lock when it has not, which is how a file system looks
// on which locks do nothing.
func TestLocksThatDoNotWork(t *testing.T) {
	_, e := newTree(t)
	e.Hold = hold(t, "pretend")
	want(t, Check(t.Context(), e), "flock", Error, "two processes got the same lock")
	e.Hold = []string{"false"}
	want(t, Check(t.Context(), e), "flock", Error, `said ""`)
}

// TestNothingCanBeWritten: a read-only tree says nothing about the locks of its file system.
func TestNothingCanBeWritten(t *testing.T) {
	dir, e := newTree(t)
	must(t, errors.Join(os.RemoveAll(filepath.Join(dir, ".reconcile/tmp")), put(dir, ".reconcile/tmp", "a file in place of a folder")))
	found := Check(t.Context(), e)
	want(t, found, "writing", Error, "files cannot be written")
	want(t, found, "flock", OK, "not examined")
	want(t, found, "clock", OK, "not examined")
}

func TestClock(t *testing.T) {
	_, e := newTree(t)
	for offset, c := range map[time.Duration]struct {
		level Level
		text  string
	}{
		0:                          {OK, "agrees"},
		time.Hour:                  {Warn, "apart"},
		-30 * 365 * 24 * time.Hour: {Error, "the clock says"},
	} {
		e.Now = func() time.Time { return time.Now().Add(offset) }
		want(t, Check(t.Context(), e), "clock", c.level, c.text)
	}
}

func TestEnvironment(t *testing.T) {
	_, e := newTree(t)
	e.Environ = append(e.Environ, "RECONCILE_RUN=x", "GIT_INDEX_FILE=/tmp/other")
	fs := Check(t.Context(), e)
	want(t, fs, "environment", Warn, "RECONCILE_RUN")
	want(t, fs, "environment", Warn, "GIT_INDEX_FILE")
}

// TestDamagedCache: whatever is in the cache, the tree is what the files say.
func TestDamagedCache(t *testing.T) {
	dir, e := newTree(t)
	wantHealthy(t, Check(t.Context(), e))
	must(t, filepath.WalkDir(filepath.Join(dir, ".reconcile/cache"), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(name)
		for i := range text {
			text[i] ^= byte(i%7) << 3
		}
		return errors.Join(err, os.WriteFile(name, text, 0o644))
	}))
	wantHealthy(t, Check(t.Context(), e))
}

func TestWorst(t *testing.T) {
	spec := Finding{Level: Error, Invalid: true}
	for _, c := range []struct {
		findings []Finding
		worst    Level
		invalid  bool
	}{
		{[]Finding{{Level: OK}, {Level: Warn}}, Warn, false},
		{[]Finding{{Level: OK}}, OK, false},
		{[]Finding{{Level: Warn}, spec, {Level: OK}}, Error, true},
		{[]Finding{spec, {Level: Error}}, Error, false},
		{[]Finding{{Level: Error}, spec}, Error, false},
	} {
		if worst, invalid := Worst(c.findings); worst != c.worst || invalid != c.invalid {
			t.Errorf("%+v: %s, %v", c.findings, worst, invalid)
		}
	}
}

func TestSome(t *testing.T) {
	if got := some(strings.Fields("a b c d e f g")); got != "a, b, c, d, e and 2 more" {
		t.Errorf("got %q", got)
	}
}

func TestIndex(t *testing.T) {
	dir, e := newTree(t)
	broken := errors.New("the index is damaged")
	e.Index = func(context.Context, *state.Store, *state.Tree) (string, error) { return "7 nodes", broken }
	want(t, Check(t.Context(), e), "index", OK, "there is none")

	must(t, put(dir, "vectors/index.snapshot", "torn"))
	if f := want(t, Check(t.Context(), e), "index", Warn, "the index is damaged"); f.Fixable {
		t.Errorf("%+v: nobody can", f)
	}
	want(t, Check(t.Context(), e), "index", Warn, "git does not ignore vectors/*.snapshot")

	must(t, put(dir, ".gitignore", ".reconcile/\n*.lock\n/vectors/*.snapshot\n"))
	damaged := broken
	broken = fmt.Errorf("%w: 1", vectors.ErrOtherVersion)
	want(t, Check(t.Context(), e), "index", OK, "another version of reconcile made the index: 1; the next search builds it again")
	broken = damaged
	e.Reindex = func(context.Context, *state.Store, *state.Tree) error { broken = nil; return nil }
	fs := Fix(t.Context(), e)
	want(t, fs, "index", OK, "repaired: the index of search cannot be used")
	want(t, fs, "index", OK, "7 nodes; 0.0 MiB; caches")
}

func TestCommittedIndex(t *testing.T) {
	dir, e := newTree(t)
	must(t, put(dir, "vectors/index.snapshot", "x"))
	if out, err := e.git(t.Context(), "add", "-f", "vectors/index.snapshot"); err != nil {
		t.Fatal(out, err)
	}
	want(t, checkGit(t.Context(), &e), "", Warn, "vectors/index.snapshot")
}

func TestDroppedCacheKeepsWhatWasPaidFor(t *testing.T) {
	dir, e := newTree(t)
	must(t, put(dir, ".reconcile/cache/embeddings/a/b", "vector"))
	must(t, put(dir, ".reconcile/cache/specs/c", "wrong"))
	var err error
	e.root, err = os.OpenRoot(dir)
	must(t, err)
	defer e.root.Close()
	must(t, e.dropCache(t.Context()))
	if _, err := os.Stat(filepath.Join(dir, ".reconcile/cache/embeddings/a/b")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".reconcile/cache/specs")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

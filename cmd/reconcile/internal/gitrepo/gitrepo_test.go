package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
)

func TestCommitExactlyThePaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	// The user is in the middle of things: staged, unstaged, half staged, untracked, removed.
	f.write("README.md", "staged\n")
	f.git("add", "README.md")
	f.write("README.md", "staged and then some\n")
	f.write("src/main.go", "package other\n")
	f.write("new.txt", "untracked\n")
	f.write("staged-new.txt", "new\n")
	f.git("add", "staged-new.txt")
	f.git("rm", "-q", "--cached", "src/deep/er/file.txt")
	before, staged := f.git("status", "--porcelain"), f.git("diff", "--cached")
	parent := f.git("rev-parse", "HEAD")

	f.write("state/dags/checks.json", `{"phase":"Succeeded"}`+"\n")
	f.write("state/runs/a/b/c.json", "{}\n")
	f.remove("state/sessions/health.json")
	hash := f.commit(r, "state/dags/checks.json", "state/runs/a/b/c.json", "state/sessions/health.json",
		"state/dags/other.json", "state/never/was.json")

	f.equal("HEAD", f.git("rev-parse", "HEAD"), hash)
	f.equal("parent", f.git("rev-parse", "HEAD^"), parent)
	f.equal("changes", f.git("diff", "--name-status", "HEAD^", "HEAD"),
		"M\tstate/dags/checks.json\nA\tstate/runs/a/b/c.json\nD\tstate/sessions/health.json")
	f.equal("status", f.git("status", "--porcelain"), before)
	f.equal("staged", f.git("diff", "--cached"), staged)
	f.equal("log", f.git("log", "-1", "--format=%an <%ae> %cn %s"), "Ada User <ada@example.org> Ada User Update status")
	f.equal("reflog", f.git("reflog", "-1", "--format=%gs %gn"), "reconcile: Update status Ada User")
	f.sound()

	res, err := r.Commit(t.Context(), Commit{Paths: []string{"state/dags/checks.json"}, Message: "again", When: noon})
	if !errors.Is(err, ErrNothing) || res.Hash != hash {
		t.Errorf("second commit: %+v, %v; want ErrNothing and %s", res, err, hash)
	}
}

func TestStatesOfHead(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*fixture){
		"branch":      func(f *fixture) {},
		"detached":    func(f *fixture) { f.git("checkout", "-q", "--detach") },
		"packed refs": func(f *fixture) { f.git("pack-refs", "--all") },
		"packed ref whose folder is left": func(f *fixture) {
			f.git("checkout", "-q", "-b", "topic/x")
			f.git("pack-refs", "--all")
			if err := os.MkdirAll(f.path(".git/refs/heads/topic/x/y"), 0o777); err != nil {
				f.Fatal(err)
			}
		},
		"packed objects": func(f *fixture) { f.git("gc", "-q") },
		"no reflog":      func(f *fixture) { f.git("config", "core.logAllRefUpdates", "false") },
		"shallow":        shallow,
		"borrowed objects": func(f *fixture) {
			other := f.TempDir()
			f.git("clone", "-q", "--shared", f.dir, other)
			f.dir = resolved(f.T, other)
		},
		"no index": func(f *fixture) {
			if err := os.Remove(f.path(".git/index")); err != nil {
				f.Fatal(err)
			}
			f.git("reset", "-q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			prepare(f)
			parent, ref := f.git("rev-parse", "HEAD"), f.git("rev-parse", "--symbolic-full-name", "HEAD")
			f.write(checks, done)
			hash := f.commit(f.open(), checks)
			f.equal("HEAD", f.git("rev-parse", "HEAD"), hash)
			f.equal("branch", f.git("rev-parse", "--symbolic-full-name", "HEAD"), ref)
			f.equal("parent", f.git("rev-parse", "HEAD^"), parent)
			f.clean()
			f.sound()
		})
	}
}

// shallow replaces the fixture by a shallow clone of itself with a history that is cut.
func shallow(f *fixture) {
	f.write("README.md", "second\n")
	f.git("commit", "-q", "-am", "second")
	other := f.TempDir()
	f.git("clone", "-q", "--depth=1", "file://"+f.dir, other)
	f.dir = resolved(f.T, other)
}

func TestFirstCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.dir = resolved(t, t.TempDir())
	f.git("init", "-q", "-b", "trunk")
	f.write(checks, done)
	f.write("mine.txt", "not to be committed\n")
	r := f.open()
	if h, err := r.Head(t.Context()); err != nil || h != (Head{Ref: "refs/heads/trunk"}) {
		t.Errorf("HEAD of a new repository: %+v, %v", h, err)
	}
	hash := f.commit(r, checks)
	f.equal("HEAD", f.git("rev-parse", "trunk"), hash)
	f.equal("commits", f.git("rev-list", "--count", "HEAD"), "1")
	f.equal("files", f.git("ls-tree", "-r", "--name-only", "HEAD"), checks)
	f.equal("status", f.git("status", "--porcelain"), "?? mine.txt")
	f.sound()
}

func TestTreeInSubfolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("teams/a/state/dags/x.json", done)
	r := f.open("teams", "a")
	dirty, err := r.Dirty(t.Context(), "", []string{"state/dags"})
	if err != nil || len(dirty) != 1 || dirty[0] != "state/dags/x.json" {
		t.Errorf("dirty: %v, %v", dirty, err)
	}
	f.commit(r, dirty...)
	f.equal("files", f.git("diff", "--name-only", "HEAD^", "HEAD"), "teams/a/state/dags/x.json")
	f.clean()
	f.sound()
}

func TestLinkedWorktree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	main := f.dir
	linked := filepath.Join(resolved(t, t.TempDir()), "linked")
	f.git("worktree", "add", "-q", "-b", "side", linked)
	f.dir = linked
	f.write(checks, done)
	f.commit(f.open(), checks)
	f.clean()
	f.equal("branch", f.git("log", "-1", "--format=%D"), "HEAD -> side")
	f.sound()
	f.dir = main
	f.clean()
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Branch: "side", When: noon}); err == nil ||
		!strings.Contains(err.Error(), "checked out in another work tree") {
		t.Errorf("a branch that another work tree has checked out was moved: %v", err)
	}
}

func TestNotARepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotARepo) {
		t.Errorf("plain folder: %v", err)
	}
	bare := t.TempDir()
	f.git("clone", "-q", "--bare", ".", bare)
	for _, dir := range []string{bare, f.path(".git"), f.path(".git/refs")} {
		if _, err := Open(dir); !errors.Is(err, ErrNotARepo) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestStagedByUser: an entry of ours that the user staged otherwise is theirs; one that says the same follows.
func TestStagedByUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage func(f *fixture)
		want  string // git status afterwards
	}{
		"same content": {func(f *fixture) { f.git("add", checks) }, ""},
		"intent to add": {func(f *fixture) {
			f.git("mv", checks, "x")
			f.git("commit", "-qm", "x")
			f.write(checks, "")
			f.git("add", "-N", checks)
		}, ""},
		"other content":   {func(f *fixture) { f.write(checks, "mine\n"); f.git("add", checks) }, "MM " + checks},
		"removed":         {func(f *fixture) { f.git("rm", "-q", "--cached", checks) }, "D  " + checks + "\n?? " + checks},
		"executable":      {func(f *fixture) { f.git("update-index", "--chmod=+x", checks) }, "MM " + checks},
		"assumed":         {func(f *fixture) { f.git("update-index", "--assume-unchanged", checks) }, ""},
		"new file staged": {func(f *fixture) { f.write("x", "x"); f.git("add", "x") }, "A  x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.stage(f)
			f.write(checks, done)
			f.commit(f.open(), checks)
			f.equal("status", f.git("status", "--porcelain"), c.want)
			f.sound()
		})
	}
}

func TestConflictAndOtherOperationsWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("checkout", "-q", "-b", "other")
	f.write("README.md", "theirs\n")
	f.git("commit", "-qam", "theirs")
	f.git("checkout", "-q", "main")
	f.write("README.md", "ours\n")
	f.git("commit", "-qam", "ours")
	head := f.git("rev-parse", "HEAD")
	for _, op := range [][]string{{"merge", "other"}, {"rebase", "other"}, {"cherry-pick", "other"}} {
		if out, err := f.try(op...); err == nil {
			t.Fatalf("%v did not stop at the conflict: %s", op, out)
		}
		before := f.git("status", "--porcelain")
		f.write(checks, done)
		_, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon})
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), op[0]) {
			t.Errorf("during %s: %v; want ErrBusy", op[0], err)
		}
		f.git("checkout", "-q", "--", checks)
		f.equal("status during "+op[0], f.git("status", "--porcelain"), before)
		f.git(op[0], "--abort")
		f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
	}
	f.write(checks, done)
	f.commit(f.open(), checks)
	f.clean()
	f.sound()
}

func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ran := f.path("hook-ran")
	for _, hook := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction",
		"post-index-change"} {
		script := "#!/bin/sh\necho " + hook + " >> '" + ran + "'\nexit 1\n"
		if err := os.WriteFile(f.path(".git/hooks/"+hook), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.write(checks, done)
	f.commit(f.open(), checks)
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran: %s", data)
	}
}

func TestSettingsBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	f.write("README.md", "staged\n")
	f.git("add", "README.md")
	f.write(checks, done)
	before, head := f.git("status", "--porcelain"), f.git("rev-parse", "HEAD")
	var last string
	for i, content := range []string{done, "again\n"} {
		f.write(checks, content)
		res, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon, Branch: "reconcile/status"})
		if err != nil {
			t.Fatal(err)
		}
		f.equal("branch", f.git("rev-parse", "reconcile/status"), res.Hash)
		parent := head
		if i > 0 {
			parent = last
		}
		f.equal("parent", f.git("rev-parse", res.Hash+"^"), parent)
		last = res.Hash
		if dirty, err := r.Dirty(t.Context(), "reconcile/status", []string{"state"}); err != nil || len(dirty) > 0 {
			t.Errorf("dirty against the branch: %v, %v", dirty, err)
		}
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
	f.equal("status", f.git("status", "--porcelain"), before)
	f.sound()
	for _, bad := range []string{"../x", "a..b", "x.lock", "-", "a b", "reconcile"} {
		if _, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, When: noon, Branch: bad}); err == nil {
			t.Errorf("branch %q was made", bad)
		}
	}
}

// TestDamagedHead: never commit on what cannot be read; a root commit would forget all history.
func TestDamagedHead(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(f *fixture){
		"empty HEAD":     func(f *fixture) { f.write(".git/HEAD", "") },
		"garbage HEAD":   func(f *fixture) { f.write(".git/HEAD", "ref: refs/heads/../../x\n") },
		"half a hash":    func(f *fixture) { f.write(".git/HEAD", "1234567\n") },
		"empty ref":      func(f *fixture) { f.write(".git/refs/heads/main", "") },
		"garbage ref":    func(f *fixture) { f.write(".git/refs/heads/main", "\x00\x00\x00") },
		"lost ref":       func(f *fixture) { f.remove(".git/refs/heads/main") },
		"missing commit": func(f *fixture) { f.write(".git/refs/heads/main", strings.Repeat("1", 40)+"\n") },
		"symref loop":    func(f *fixture) { f.write(".git/refs/heads/main", "ref: refs/heads/main\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := f.open()
			f.write(checks, done)
			damage(f)
			objects := tree(t, f.path(".git"))
			if res, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon}); err == nil {
				t.Errorf("committed %v", res)
			}
			f.equal("git directory", tree(t, f.path(".git")), objects)
		})
	}
}

// tree lists all files below dir with their content, but for our own guard.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "guard" {
			return err
		}
		data, err := os.ReadFile(p)
		b.WriteString(p + " " + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWorkTreeElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("config", "core.worktree", t.TempDir())
	if _, err := Open(f.dir); !errors.Is(err, ErrNotARepo) || !strings.Contains(err.Error(), "core.worktree") {
		t.Errorf("a work tree that is elsewhere: %v", err)
	}
	f.write(".git/config", "[core]\n\tbare = true\n")
	if _, err := Open(f.dir); !errors.Is(err, ErrNotARepo) {
		t.Errorf("a bare repository called .git: %v", err)
	}
}

// TestMessageTrailersAreRead: git finds the trailers.
func TestMessageTrailersAreRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(checks, done)
	text := message.New([]message.Change{{Object: "dag/checks", Note: "1 of 1 nodes succeeded"}}, message.Trailer{Key: "Reconcile-Input", Value: "abc"})
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: text, When: noon}); err != nil {
		t.Fatal(err)
	}
	f.equal("message", f.git("log", "-1", "--format=%B"), text)
	f.equal("trailers", f.git("log", "-1", "--format=%(trailers:only,separator=%x2C)"), "Reconcile-Input: abc,Reconcile-Objects: 1")
}

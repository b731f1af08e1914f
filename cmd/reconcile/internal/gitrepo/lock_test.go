package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// hasty opens the repository with little patience for locks.
func (f *fixture) hasty() *Repo {
	r := f.open()
	r.native.(*native).lockTimeout = 20 * time.Millisecond
	r.command.(*command).lockTimeout = 20 * time.Millisecond
	return r
}

// TestLockedIndex: the commit stands, and the index follows when its lock is free again.
func TestLockedIndex(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(f *fixture, r *Repo) error{
		"settle":      func(f *fixture, r *Repo) error { return r.Settle(f.Context()) },
		"next commit": func(f *fixture, r *Repo) error { return f.another(r, "state/dags/other.json") },
		"nothing to commit": func(f *fixture, r *Repo) error {
			if err := f.another(r, checks); !errors.Is(err, ErrNothing) {
				return fmt.Errorf("got %w, want ErrNothing", err)
			}
			return nil
		},
		"by git": func(f *fixture, r *Repo) error {
			r.why = errors.New("as if it were beyond the native backend")
			return r.Settle(f.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := f.hasty()
			f.write("README.md", "staged\n")
			f.git("add", "README.md")
			before := f.git("status", "--porcelain")
			f.write(checks, done)
			f.write(".git/index.lock", "")
			res, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon})
			if err != nil || !strings.Contains(res.Warning, "the index has yet to follow") {
				t.Fatalf("commit beside a locked index: %+v, %v", res, err)
			}
			f.equal("HEAD", f.git("rev-parse", "HEAD"), res.Hash)
			f.remove(".git/index.lock")
			if err := later(f, r); err != nil {
				t.Fatal(err)
			}
			f.equal("status", f.git("status", "--porcelain"), before)
			f.sound()
		})
	}
}

func (f *fixture) another(r *Repo, path string) error {
	f.write(path, done)
	_, err := r.Commit(f.Context(), Commit{Paths: []string{path}, Message: "m", When: noon})
	return err
}

// TestIndexFollowsOnlyItsBranch: a commit whose index never followed is moot once git checkout has made a new index.
func TestIndexFollowsOnlyItsBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.hasty()
	f.git("branch", "other")
	f.write(checks, done)
	f.write(".git/index.lock", "")
	if res, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon}); err != nil || res.Warning == "" {
		t.Fatalf("%+v %v", res, err)
	}
	f.remove(".git/index.lock")
	f.git("checkout", "-q", "-f", "other")
	if err := r.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clean()
	f.git("checkout", "-q", "main")
	f.clean()
	f.sound()
}

// TestLockedReference: nothing is committed, the error says which file, and nothing is left lying about.
func TestLockedReference(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{".git/HEAD.lock", ".git/refs/heads/main.lock"} {
		f := newFixture(t)
		r := f.hasty()
		head := f.git("rev-parse", "HEAD")
		f.write(checks, done)
		f.write(lock, "")
		_, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon})
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), lock) {
			t.Errorf("%s: %v; want ErrBusy", lock, err)
		}
		f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
		f.remove(lock)
		f.commit(r, checks)
		f.clean()
		f.sound()
	}
}

// TestStaleLockOfOurs: what a killed process of ours holds is taken at once; the same file made by git never is.
func TestStaleLockOfOurs(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".git/HEAD", ".git/refs/heads/main", ".git/index"} {
		f := newFixture(t)
		r := f.hasty()
		w, err := openScratchDir(t.Context(), r.layout, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.lock(t.Context(), f.path(path)); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != nil { // as the kernel does for the dead
			t.Fatal(err)
		}
		f.write(checks, done)
		f.commit(r, checks)
		f.clean()
		f.sound()
	}
}

func TestGuardIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.hasty()
	w, err := openScratchDir(t.Context(), r.layout, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	f.write(checks, done)
	if _, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, When: noon}); !errors.Is(err, ErrBusy) {
		t.Errorf("while another process commits: %v; want ErrBusy", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.open().Commit(ctx, Commit{Paths: []string{checks}, When: noon}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	f.commit(r, checks)
	f.sound()
}

// TestConcurrentCommits: several of our processes, a user who commits with git, and one who packs: nothing is lost.
func TestConcurrentCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const writers, rounds = 3, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self(t))
			cmd.Env = append(os.Environ(), fmt.Sprintf("GITREPO_TEST_WRITER=%d %d %s", w, rounds, f.dir))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer %d: %v\n%s", w, err, out)
			}
		})
	}
	wg.Go(func() {
		for i := range rounds {
			f.write(fmt.Sprintf("user/%d.txt", i), "x")
			f.untilFree("add", fmt.Sprintf("user/%d.txt", i))
			f.untilFree("commit", "-q", "-m", "user")
			f.untilFree("pack-refs", "--all")
		}
	})
	wg.Wait()
	f.equal("commits", f.git("rev-list", "--count", "HEAD"), fmt.Sprint(1+writers*rounds+rounds))
	f.equal("parents", f.git("rev-list", "--count", "--first-parent", "HEAD"), fmt.Sprint(1+writers*rounds+rounds))
	f.clean()
	f.sound()
}

// untilFree repeats a git command for as long as it fails on a lock or on a branch that moved.
func (f *fixture) untilFree(args ...string) {
	for {
		out, err := f.try(args...)
		if err == nil {
			return
		}
		if !strings.Contains(out, ".lock") && !strings.Contains(out, "cannot lock ref") {
			f.Errorf("git %v: %v\n%s", args, err, out)
			return
		}
	}
}

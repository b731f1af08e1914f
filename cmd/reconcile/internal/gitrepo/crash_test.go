//go:build linux && amd64

package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/state/mutants"
)

// crashSite is a repository to strike: the user has something staged, and reconcile has something to commit.
type crashSite struct {
	*fixture
	program string // which function the process runs
	status  string // what the user sees of their own files, before and after
	trees   string // the trees of the two commits, the new one first
}

func newCrashSite(t *testing.T, program string, many int, staged ...string) *crashSite {
	f := newFixture(t)
	for _, p := range staged {
		f.write(p, "staged\n")
		f.git("add", p)
	}
	f.write("src/main.go", "package unstaged\n")
	s := &crashSite{fixture: f, program: program, status: f.git("status", "--porcelain")}
	s.fill(f, many)
	plain := &fixture{t, resolved(t, t.TempDir())}
	if err := s.copyTo(plain.dir); err != nil {
		t.Fatal(err)
	}
	plain.git("stash", "-q", "--", "README.md", "src/main.go")
	plain.git("add", "-A", "state")
	plain.git("commit", "-q", "-m", "what git makes of it")
	s.trees = plain.git("log", "--format=%T")
	return s
}

func (s *crashSite) fill(f *fixture, many int) {
	f.write(checks, done)
	f.write("state/dags/new.json", done)
	f.remove("state/sessions/health.json")
	for i := range many {
		f.write(fmt.Sprintf("state/runs/%d/%03d.json", i%3, i), fmt.Sprintf("{\"n\": %d}\n", i))
	}
}

func (s *crashSite) copyTo(dir string) error {
	out, err := exec.Command("cp", "-a", s.dir+"/.", dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cp: %w\n%s", err, out)
	}
	return err
}

// spec is one run on a fresh copy.
func (s *crashSite) spec(t *testing.T, mode crashtest.Mode, errno syscall.Errno) func() (crashtest.Spec, error) {
	exe, scratch := self(t), t.TempDir()
	return func() (crashtest.Spec, error) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err == nil {
			err = s.copyTo(dir)
		}
		if err != nil {
			return crashtest.Spec{}, err
		}
		return crashtest.Spec{Cmd: []string{exe}, Root: dir, Mode: mode, Errno: errno,
			Env: append(os.Environ(), "TMPDIR="+scratch, "GITREPO_TEST_"+s.program+"="+dir)}, nil
	}
}

// check judges what a struck run left, runs again, and judges the end: one commit on top of the first, with exactly
// the right files, the user's own files as they were, nothing broken and nothing lying about.
func (s *crashSite) check(spec crashtest.Spec, r crashtest.Result) error {
	dir := spec.Root
	if err := gitFsck(dir); err != nil {
		return fmt.Errorf("after the strike: %w\n%s", err, r.Stderr)
	}
	if err := s.behind(dir); err != nil && spec.Mode != crashtest.Fail && s.program != "STOCK" {
		return fmt.Errorf("after the strike: %w\n%s", err, r.Stderr)
	}
	again := exec.Command(spec.Cmd[0])
	again.Env = spec.Env
	if out, err := again.CombinedOutput(); err != nil {
		return fmt.Errorf("run again: %w: %s", err, out)
	}
	for _, want := range []struct{ what, want string }{{"status --porcelain", s.status}, {"log --format=%T", s.trees}} {
		out, err := gitIn(dir, strings.Fields(want.what)...)
		if got := strings.TrimSuffix(out, "\n"); err != nil || got != want.want {
			return fmt.Errorf("git %s: %w\n%s\nwant\n%s", want.what, err, got, want.want)
		}
	}
	if s.program == "STOCK" {
		return nil // litter is the least of its faults
	}
	return litterIn(dir)
}

// behind is an error when the branch has the commit and the index has not: a user who commits then takes it back.
func (s *crashSite) behind(dir string) error {
	trees, err := gitIn(dir, "log", "--format=%T")
	if err != nil || strings.TrimSuffix(trees, "\n") != s.trees {
		return err
	}
	status, err := gitIn(dir, "status", "--porcelain")
	if err == nil && strings.TrimSuffix(status, "\n") != s.status {
		err = fmt.Errorf("the branch is ahead of the index:\n%s", status)
	}
	return err
}

func gitFsck(dir string) error {
	out, err := gitIn(dir, "fsck", "--strict", "--full", "--no-dangling")
	if err != nil || strings.Contains(out, "error") || strings.Contains(out, "missing") || strings.Contains(out, "broken") {
		return fmt.Errorf("git fsck: %w\n%s", err, out)
	}
	return nil
}

func gitIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func litterIn(dir string) error {
	var litter []string
	err := filepath.WalkDir(filepath.Join(dir, ".git"), func(p string, d os.DirEntry, err error) error {
		if strings.HasSuffix(p, ".lock") || strings.HasSuffix(p, ".tmp") || strings.Contains(p, "tmp_") || d.Name() == "pending.json" {
			litter = append(litter, p)
		}
		return err
	})
	if len(litter) > 0 {
		err = fmt.Errorf("litter: %v", litter)
	}
	return err
}

// TestCrash strikes a commit at calls that change a file: a sample of them, or all with RECONCILE_SWEEP=all.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("strikes many child processes")
	}
	t.Parallel()
	few, many := newCrashSite(t, "CRASH", 0, "README.md"), newCrashSite(t, "CRASH", 80, "README.md")
	for _, c := range []struct {
		name  string
		site  *crashSite
		mode  crashtest.Mode
		errno syscall.Errno
		nth   int
	}{
		{"loose, killed", few, crashtest.Kill, 0, 7},
		{"loose, torn", few, crashtest.Torn, 0, 2},
		{"loose, disk full", few, crashtest.Fail, syscall.ENOSPC, 9},
		{"pack, killed", many, crashtest.Kill, 0, 8},
		{"pack, torn", many, crashtest.Torn, 0, 2},
		{"pack, disk broken", many, crashtest.Fail, syscall.EIO, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, err := crashtest.EveryNth(t.Context(), mutants.Size(c.nth, c.nth, 1), c.site.spec(t, c.mode, c.errno), c.site.check)
			if err != nil || n < 3 {
				t.Fatalf("%d points: %v", n, err)
			}
			t.Logf("%d points", n)
		})
	}
}

// TestPowerLoss looks for names and contents that a power loss could take back after the commit was reported.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for name, many := range map[string]int{"loose": 0, "pack": 80} {
		spec, err := newCrashSite(t, "CRASH", many).spec(t, crashtest.None, 0)()
		if err != nil {
			t.Fatal(err)
		}
		r, err := crashtest.Run(t.Context(), spec)
		if err != nil || r.Exit != 0 {
			t.Fatalf("%v, exit %d\n%s", err, r.Exit, r.Stderr)
		}
		for _, finding := range crashtest.Lint(r.Calls, func(path string) bool {
			return strings.HasPrefix(path, ".git/reconcile") || strings.HasPrefix(path, ".git/logs") || strings.HasSuffix(path, ".lock")
		}) {
			t.Errorf("%s: %v", name, finding)
		}
	}
}

// TestMutantStockGoGit: the same test catches go-git's own Add and Commit, because they commit what the user staged;
// and where nothing is staged, because a kill in the wrong place cannot be made good.
func TestMutantStockGoGit(t *testing.T) {
	t.Parallel()
	for name, staged := range map[string][]string{"staged": {"README.md"}, "nothing staged": nil} {
		site := newCrashSite(t, "STOCK", 0, staged...)
		_, err := crashtest.Every(t.Context(), site.spec(t, crashtest.Kill, 0), site.check)
		if err == nil {
			t.Errorf("%s: a commit by stock go-git passes for safe: the crash test tests nothing", name)
		}
		t.Logf("%s: caught: %.300v", name, err)
	}
}

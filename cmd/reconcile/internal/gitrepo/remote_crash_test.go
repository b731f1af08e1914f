//go:build linux && amd64

package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/state/mutants"
)

// newAdoptSite is a repository to strike while it adopts: people and reconcile have both committed on both sides, and
// the user has something staged, something unstaged, and something untracked.
func newAdoptSite(t *testing.T) *crashSite {
	f, other := adoptSite(t)
	other.record(map[string]string{checks: `{"phase":"Failed"}` + "\n", "state/runs/b/1.json": "{}\n"})
	other.push()
	if _, err := f.remote().Fetch(t.Context()); err != nil { // so that the struck process has nothing to download
		t.Fatal(err)
	}
	s := &crashSite{fixture: f, program: "ADOPT"}
	plain := &fixture{t, resolved(t, t.TempDir())}
	if err := s.copyTo(plain.dir); err != nil {
		t.Fatal(err)
	}
	if err := crashAdopt(plain.dir); err != nil {
		t.Fatal(err)
	}
	s.status, s.trees = plain.git("status", "--porcelain"), plain.git("log", "--format=%T")
	f.equal("status", s.status, "M  README.md\n M mine.txt\n?? other.txt\n?? state/runs/a/")
	return s
}

// adoptSite is the part of it that git itself could put together.
func adoptSite(t *testing.T) (f, other *fixture) {
	f, other = replacing(t)
	other.author("theirs", map[string]string{"src/deep/er/file.txt": "theirs\n", "src/new.txt": "theirs\n"})
	other.git("rm", "-q", "src/main.go")
	other.git("commit", "-qm", "less")
	other.push()
	f.record(map[string]string{checks: done, "state/runs/a/1.json": "{}\n"})
	f.author("mine", map[string]string{"mine.txt": "mine\n"})
	f.write("README.md", "staged\n")
	f.git("add", "README.md")
	f.write("mine.txt", "unstaged\n")
	f.write("other.txt", "untracked\n")
	f.write(".git/info/exclude", ".reconcile/\n") // as every tree has it
	return f, other
}

// users is what stands in the files that nobody but the user may change, and in a record that is only here.
func (s *crashSite) users(dir string) string {
	files := &fixture{s.T, dir}
	return files.read("README.md") + files.read("mine.txt") + files.read("other.txt") + files.read("state/runs/a/1.json")
}

const usersFiles = "staged\nunstaged\nuntracked\n{}\n"

// checkAdopted is crashSite.check, and looks at the files that the user has.
func (s *crashSite) checkAdopted(spec crashtest.Spec, r crashtest.Result) error {
	if got := s.users(spec.Root); got != usersFiles {
		return fmt.Errorf("after the strike: %q\n%s", got, r.Stderr)
	}
	if err := s.check(spec, r); err != nil {
		return err
	}
	files := &fixture{s.T, spec.Root}
	if got := s.users(spec.Root) + files.read(checks) + files.read("src/deep/er/file.txt"); got != usersFiles+`{"phase":"Failed"}`+"\ntheirs\n" {
		return fmt.Errorf("in the end: %q", got)
	}
	return nil
}

// TestAdoptCrash strikes an adoption at calls that change a file, of git's too: a sample of them, or all with RECONCILE_SWEEP=all.
func TestAdoptCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("strikes some hundred child processes")
	}
	t.Parallel()
	site := newAdoptSite(t)
	for _, c := range []struct {
		name  string
		mode  crashtest.Mode
		errno syscall.Errno
		nth   int
	}{{"killed", crashtest.Kill, 0, 9}, {"torn", crashtest.Torn, 0, 4}, {"disk full", crashtest.Fail, syscall.ENOSPC, 13}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, err := crashtest.EveryNth(t.Context(), mutants.Size(c.nth, c.nth, 1), site.spec(t, c.mode, c.errno), site.checkAdopted)
			if err != nil || n < 3 {
				t.Fatalf("%d points: %v", n, err)
			}
			t.Logf("%d points", n)
		})
	}
}

// TestAdoptCrashThenCommit: what a killed adoption left is taken back by the next commit, too, and git status shows what
// it did before.
func TestAdoptCrashThenCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("strikes some hundred child processes")
	}
	t.Parallel()
	site := newAdoptSite(t)
	before, trees := site.git("status", "--porcelain"), site.git("log", "--format=%T")
	struck := site.spec(t, crashtest.Kill, 0)
	_, err := crashtest.EveryNth(t.Context(), mutants.Size(11, 11, 1), struck, func(spec crashtest.Spec, r crashtest.Result) error {
		again := exec.Command(spec.Cmd[0])
		again.Env = append(os.Environ(), "GITREPO_TEST_SETTLE="+spec.Root)
		if out, err := again.CombinedOutput(); err != nil {
			return fmt.Errorf("settle: %w: %s", err, out)
		}
		log, err := gitIn(spec.Root, "log", "--format=%T")
		if err != nil {
			return err
		}
		status, err := gitIn(spec.Root, "status", "--porcelain")
		want := before
		if strings.TrimSuffix(log, "\n") != trees {
			want = site.status
		}
		if got := strings.TrimSuffix(status, "\n"); err != nil || got != want {
			return fmt.Errorf("git status: %w\n%s\nwant\n%s", err, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAdoptPowerLoss looks for names and contents that a power loss could take back after the adoption was reported.
func TestAdoptPowerLoss(t *testing.T) {
	t.Parallel()
	spec, err := newAdoptSite(t).spec(t, crashtest.None, 0)()
	if err != nil {
		t.Fatal(err)
	}
	r, err := crashtest.Run(t.Context(), spec)
	if err != nil || r.Exit != 0 {
		t.Fatalf("%v, exit %d\n%s", err, r.Exit, r.Stderr)
	}
	for _, finding := range crashtest.Lint(r.Calls, func(path string) bool {
		return strings.HasPrefix(path, ".git/reconcile") || strings.HasPrefix(path, ".git/logs") || strings.HasSuffix(path, ".lock") ||
			strings.HasPrefix(path, ".reconcile/tmp") || strings.HasPrefix(path, ".git/refs/remotes") // a courtesy
	}) {
		t.Errorf("%v", finding)
	}
}

// TestMutantGitPull: what git itself offers for the same, a pull that puts the user's changes aside and back, is caught:
// killed in the wrong place, the changes are gone from the work tree, or git has to be helped.
func TestMutantGitPull(t *testing.T) {
	if testing.Short() {
		t.Skip("strikes some twenty child processes")
	}
	t.Parallel()
	f, _ := adoptSite(t)
	site := &crashSite{fixture: f, program: "PULL"}
	_, err := crashtest.EveryNth(t.Context(), 3, site.spec(t, crashtest.Kill, 0), func(spec crashtest.Spec, r crashtest.Result) error {
		if !r.Struck && r.Exit != 0 {
			t.Errorf("git pull does not work at all: %s", r.Stderr)
		}
		if got := site.users(spec.Root); got != usersFiles {
			return fmt.Errorf("after the strike: %q", got)
		}
		return crashPull(spec.Root)
	})
	if err == nil {
		t.Error("git pull --autostash passes for safe: the crash test tests nothing")
	}
	t.Logf("caught: %.300v", err)
}

package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fixture is a work tree with a git repository of its own, isolated from the machine's configuration.
type fixture struct {
	*testing.T
	dir string
}

// TestMain isolates all tests from the configuration of the machine and of whoever runs them.
func TestMain(m *testing.M) {
	for name, program := range programs {
		if arg := os.Getenv("GITREPO_TEST_" + name); arg != "" {
			if err := program(arg); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	home, err := os.MkdirTemp("", "gitrepo-home")
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if key, _, _ := strings.Cut(kv, "="); strings.HasPrefix(key, "GIT_") || key == "XDG_CONFIG_HOME" {
			os.Unsetenv(key)
		}
	}
	os.Setenv("HOME", home)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

var noon = time.Date(2026, 2, 27, 12, 0, 0, 0, time.FixedZone("", 3600))

// newFixture makes a repository with a first commit of some files of the user and some of reconcile.
func newFixture(t *testing.T) *fixture {
	f := &fixture{t, resolved(t, t.TempDir())}
	f.git("init", "-q", "-b", "main")
	f.git("config", "user.name", "Ada User")
	f.git("config", "user.email", "ada@example.org")
	f.git("config", "gc.auto", "0")
	f.write("README.md", "hello\n")
	f.write("src/main.go", "package main\n")
	f.write("src/deep/er/file.txt", "deep\n")
	f.write("state/dags/checks.json", `{"phase":"Pending"}`+"\n")
	f.write("state/dags/other.json", `{"phase":"Pending"}`+"\n")
	f.write("state/sessions/health.json", `{"phase":"Active"}`+"\n")
	f.git("add", ".")
	f.git("commit", "-q", "-m", "first")
	return f
}

func resolved(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (f *fixture) path(p string) string { return filepath.Join(f.dir, filepath.FromSlash(p)) }

func (f *fixture) write(p, content string) {
	f.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(p)), 0o777); err != nil {
		f.Fatal(err)
	}
	tmp := f.path(p) + ".new"
	syscall.ForkLock.RLock() // a process that starts meanwhile would hold the file open, and it could not be executed
	err := os.WriteFile(tmp, []byte(content), 0o666)
	syscall.ForkLock.RUnlock()
	if err != nil {
		f.Fatal(err)
	}
	if err := os.Rename(tmp, f.path(p)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) remove(p string) {
	f.Helper()
	if err := os.Remove(f.path(p)); err != nil {
		f.Fatal(err)
	}
}

// try runs git in the work tree.
func (f *fixture) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *fixture) git(args ...string) string {
	f.Helper()
	out, err := f.try(args...)
	if err != nil {
		f.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func (f *fixture) open(sub ...string) *Repo {
	f.Helper()
	r, err := OpenToCommit(filepath.Join(append([]string{f.dir}, sub...)...))
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// commit commits paths and fails the test if that does not work without a warning.
func (f *fixture) commit(r *Repo, paths ...string) string {
	f.Helper()
	res, err := r.Commit(f.Context(), Commit{Paths: paths, Message: "Update status", When: noon})
	if err != nil || res.Warning != "" {
		f.Fatalf("commit: %v %s", err, res.Warning)
	}
	return res.Hash
}

// sound checks what must hold after every commit: git finds nothing wrong, and nothing of ours is left lying about.
func (f *fixture) sound() {
	f.Helper()
	if out, err := f.try("fsck", "--strict", "--full"); err != nil || strings.Contains(out, "missing") {
		f.Errorf("git fsck: %v\n%s", err, out)
	}
	f.unlittered()
}

func (f *fixture) unlittered() {
	f.Helper()
	common := f.git("rev-parse", "--path-format=absolute", "--git-common-dir")
	err := filepath.WalkDir(common, func(p string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(p, ".lock") || strings.HasSuffix(p, ".tmp") || strings.Contains(d.Name(), "tmp_")) {
			f.Errorf("litter: %s", p)
		}
		return err
	})
	if err != nil {
		f.Error(err)
	}
	if entries, _ := os.ReadDir(filepath.Join(common, "reconcile")); len(entries) > 1 {
		f.Errorf("left in reconcile/: %v", entries)
	}
}

func (f *fixture) equal(what, got, want string) {
	f.Helper()
	if got != want {
		f.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

const (
	checks = "state/dags/checks.json"
	done   = `{"phase":"Succeeded"}` + "\n"
)

// clean checks that git sees no difference at all between the commit, the index and the work tree.
func (f *fixture) clean() {
	f.Helper()
	f.equal("git status", f.git("status", "--porcelain"), "")
}

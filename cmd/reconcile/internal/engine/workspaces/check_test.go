//go:build linux

package workspaces

import (
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state/proc"
)

// check opens the checkout of a commit for the checks of an effect, and fails the test if it has another file.
func (f *fixture) check(key, commit, text string) string {
	f.Helper()
	e := checkEffect(settle.Effect{Key: "dags/d/" + key}, commit, settle.Command{}, nil)
	w := f.open(runner.WorkspaceRequest{Effect: e, Task: e.Command()})
	data, err := os.ReadFile(filepath.Join(w.Dir(), "file"))
	if err != nil || string(data) != text {
		f.Errorf("the checkout of %s has %q, %v", key, data, err)
	}
	if exists(filepath.Join(w.Dir(), "left")) || exists(filepath.Join(w.Dir(), "ignored")) {
		f.Errorf("the checkout of %s has files of another check", key)
	}
	for name, text := range map[string]string{"left": "x", "ignored": "x", "file": "evil"} {
		f.put(w, name, text)
	}
	return w.Dir()
}

// free ends the checks of an effect.
func (f *fixture) free(key string, clean bool) {
	f.Helper()
	if err := f.m.freeCheck(checkName(settle.Effect{Key: "dags/d/" + key}), clean); err != nil {
		f.Fatal(err)
	}
}

// TestChecksShareCheckouts: a checkout is used for the checks of other commits, also by a later process, but never while checks use it, and only if
// these have ended well.
func TestChecksShareCheckouts(t *testing.T) {
	f := newFixture(t)
	first := f.git("rev-parse", "HEAD")
	f.write("file", "two\n")
	f.git("commit", "-qam", "second")
	second := f.git("rev-parse", "HEAD")
	a := f.check("a", first, "one\n")
	if b := f.check("b", second, "two\n"); a == b {
		t.Error("two checks work in one folder")
	}
	f.free("a", true)
	inode, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	if c := f.check("c", second, "two\n"); c != a {
		t.Errorf("%s is not used again, but %s", a, c)
	}
	if is, err := os.Stat(a); err != nil || !os.SameFile(is, inode) {
		t.Errorf("it was made anew: %v", err)
	}
	f.free("c", false)
	if exists(a) {
		t.Error("what checks left that did not end is used again")
	}
	f.free("b", true)
	if err := f.m.leaveChecks(); err != nil {
		t.Fatal(err)
	}
	later, err := New(f.m.o)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := filepath.Join(f.m.dir, "check.2")
	if !exists(b) {
		t.Error("a later process cannot use it")
	}
	f.m = later
	f.check("d", first, "one\n") // check.1
	if d := f.check("e", first, "one\n"); d != b {
		t.Errorf("%s is not used again, but %s", b, d)
	}
	// A killed process may have left something at work in it.
	if _, err := f.m.change("check.2", func(o Owner) (Owner, error) { o.Process = proc.ID{}; return o, nil }); err != nil {
		t.Fatal(err)
	}
	inode, err = os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	if f.m, err = New(f.m.o); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(b) // while it is open, no new folder gets its number
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	f.check("f", first, "one\n")
	if is, err := os.Stat(b); err != nil || os.SameFile(is, inode) {
		t.Errorf("that of a killed process is used again: %v", err)
	}
}

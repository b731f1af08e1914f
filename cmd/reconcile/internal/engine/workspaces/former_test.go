package workspaces

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/proc"
)

// TestFormerRepository: a workspace that was made from a repository which was in the same folder before is neither used nor deleted.
func TestFormerRepository(t *testing.T) {
	f := newFixture(t)
	var said []string
	f.m.o.Warn = func(text string) { said = append(said, text) }
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "file", "precious\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(f.tree, ".git")); err != nil {
		t.Fatal(err)
	}
	f.write("file", "another one\n")
	f.git("init", "-q", "-b", "main", ".")
	f.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "empty")
	f.git("add", ".")
	f.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "again")
	w = f.open(request("a", "1", schemas.WorkspaceClone))
	if text, err := os.ReadFile(filepath.Join(w.Dir(), "file")); err != nil || string(text) != "another one\n" {
		t.Errorf("%q, %v", text, err)
	}
	kept, err := filepath.Glob(filepath.Join(f.m.dir, "*.former-*", "file"))
	if err != nil || len(kept) != 1 || len(said) != 1 || !strings.Contains(said[0], filepath.Dir(kept[0])) {
		t.Fatalf("%v, %v, %q", kept, err, said)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "precious\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestClonedAnew: a workspace whose commit is gone, since the repository was cloned anew and only its base had been pushed, is parked as a whole.
func TestClonedAnew(t *testing.T) {
	f := newFixture(t)
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "file", "precious\n")
	run, err := w.Commit(f.Context(), f.now, nil, nil)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(t.TempDir(), "clone")
	f.git("clone", "-q", "--no-local", "--single-branch", "--branch", "main", ".", away)
	if err := errors.Join(os.RemoveAll(f.tree), os.Rename(away, f.tree)); err != nil {
		t.Fatal(err)
	}
	why, err := f.m.NotReady(f.Context(), &settle.Land{Base: run.Base, Commit: run.Commit, Files: run.Files, Whole: true})
	if err != nil || !strings.Contains(why, "is not in this repository; fetch a branch that has it, or retry the node") {
		t.Errorf("%q, %v", why, err)
	}
	ref, err := f.m.Drop(f.Context(), f.only().Name)
	if err != nil {
		t.Fatal(err)
	}
	if text := f.git("show", ref+":file"); text != "precious" {
		t.Errorf("%q", text)
	}
}

// TestGoesOnFromACommit: a change goes on in a new workspace when its own is gone, as a change of the same base; one that the repository does
// not have begins anew.
func TestGoesOnFromACommit(t *testing.T) {
	for _, kind := range []string{schemas.WorkspaceClone, schemas.WorkspaceWorktree} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			f.write("old", "old\n")
			f.git("add", ".")
			f.git("commit", "-qm", "old")
			w := f.open(request("a", "1", kind))
			f.put(w, "file", "half\n")
			f.put(w, "new", "new\n")
			if err := os.Remove(filepath.Join(w.Dir(), "old")); err != nil {
				t.Fatal(err)
			}
			left, err := w.Commit(f.Context(), f.now, nil, nil)
			if err = errors.Join(err, w.Close(), os.RemoveAll(f.m.dir)); err != nil {
				t.Fatal(err)
			}
			f.git("worktree", "prune")
			f.git("commit", "-q", "--allow-empty", "-m", "meanwhile")
			q := request("a", "2", kind)
			q.Task.Workspace.From = &settle.Commit{Base: left.Base, Commit: left.Commit}
			w = f.open(q)
			f.put(w, "more", "more\n")
			now, err := w.Commit(f.Context(), f.now, nil, nil)
			if err != nil || now.Base != left.Base || strings.Join(now.Files, " ") != "file more new old" {
				t.Errorf("%+v, %v", now, err)
			}
			if text, err := os.ReadFile(filepath.Join(w.Dir(), "file")); err != nil || string(text) != "half\n" {
				t.Errorf("%q, %v", text, err)
			}
			if err := errors.Join(w.Close(), os.RemoveAll(f.m.dir)); err != nil {
				t.Fatal(err)
			}
			f.git("worktree", "prune")
			q.Task.Workspace.From.Commit = strings.Repeat("1", len(left.Commit))
			w = f.open(q)
			if _, err := os.Stat(filepath.Join(w.Dir(), "old")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFileInPlaceOfAFolder commits a folder that became a file, and a file that became a folder.
func TestFileInPlaceOfAFolder(t *testing.T) {
	f := newFixture(t)
	f.write("folder/inner", "one\n")
	f.git("add", ".")
	f.git("commit", "-qm", "folder")
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	err := errors.Join(os.RemoveAll(filepath.Join(w.Dir(), "folder")), os.Remove(filepath.Join(w.Dir(), "file")))
	if err != nil {
		t.Fatal(err)
	}
	f.put(w, "folder", "a file\n")
	f.put(w, "file/inner", "a folder\n")
	got, err := w.Commit(f.Context(), f.now, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if names := f.git("ls-tree", "-r", "--name-only", got.Commit); names != ".gitignore\nfile/inner\nfolder" {
		t.Errorf("%q", names)
	}
}

// TestPortsWhileBeingMade: a workspace that is being made, whose setup may take long, has its ports for itself.
func TestPortsWhileBeingMade(t *testing.T) {
	f := newFixture(t)
	first := f.m.ports(nil)
	being := Owner{State: stateCreated, Process: proc.Self(), PortBase: first}
	if next := f.m.ports([]Owner{being}); first == 0 || next == first {
		t.Errorf("%d and %d", first, next)
	}
	being.Process = proc.ID{} // nobody makes it any more
	if next := f.m.ports([]Owner{being}); next != first {
		t.Errorf("%d, and again %d", first, next)
	}
}

// TestRepositoryWithoutACommit names a repository in a workspace, also one that git cannot add.
func TestRepositoryWithoutACommit(t *testing.T) {
	f := newFixture(t)
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "inner/file", "x\n")
	if out, err := exec.Command("git", "-C", filepath.Join(w.Dir(), "inner"), "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := w.Commit(f.Context(), f.now, nil, nil); err == nil || !strings.Contains(err.Error(), "inner is a git repository of its own") {
		t.Error(err)
	}
}

// TestNamesThatCannotLand: a file of a name that is checked out nowhere is in no commit, and is told at once; one that git refuses is in no object.
func TestNamesThatCannotLand(t *testing.T) {
	for name, parks := range map[string]bool{"deep/.Git": false, `a\b`: true, ":(top)x": true, "c:d": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.open(request("a", "1", schemas.WorkspaceClone))
			f.put(w, name, "odd\n")
			if _, err := w.Commit(f.Context(), f.now, nil, nil); err == nil || !strings.Contains(err.Error(), "rename it") {
				t.Errorf("committed: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := f.m.Drop(f.Context(), f.only().Name); (err == nil) != parks {
				t.Error(err)
			}
			f.git("fsck", "--strict")
		})
	}
	f := newFixture(t)
	f.write("a:b", "one\n")
	f.git("add", ".")
	f.git("commit", "-qm", "odd")
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	if err := os.Remove(filepath.Join(w.Dir(), "a:b")); err != nil {
		t.Fatal(err)
	}
	got, err := w.Commit(f.Context(), f.now, nil, nil)
	if err != nil || got.Changed != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	l := &settle.Land{Base: got.Base, Commit: got.Commit, Run: "dags/d/a-1", Target: "main"}
	if o, err := f.m.land(f.Context(), l, passes); err != nil || o.reason != schemas.LandedRefused || !strings.Contains(o.message, `"a:b"`) {
		t.Errorf("%+v, %v", o, err)
	}
}

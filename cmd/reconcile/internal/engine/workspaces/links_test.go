package workspaces

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestLinksLeadNowhere: an agent that has made a link in its workspace cannot have reconcile, which nothing confines, write or read
// through it.
func TestLinksLeadNowhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	f := newFixture(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "key"), []byte("private\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := f.open(request("a", "1", "clone")).(*workspace)
	if err := os.Symlink(outside, filepath.Join(w.Dir(), "ignored")); err != nil {
		t.Fatal(err)
	}
	f.write("ignored/out", "made\n")
	f.write(".env", "here\n")
	if err := w.bring(t.Context(), []string{"ignored/out"}, nil); err == nil {
		t.Error("an output was brought through a link")
	}
	made := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(made, "ignored"), 0o755), os.WriteFile(filepath.Join(made, "ignored", "hook"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := CopyTree(made, w.Top(), "."); err == nil {
		t.Error("what setup made was copied through a link")
	}
	if err := w.deliver([]string{"ignored/key"}, nil); err == nil {
		t.Error("an output was read through a link")
	}
	if _, err := os.Stat(filepath.Join(f.tree, "ignored", "key")); err == nil {
		t.Error("the file of another folder is in the tree")
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 1 {
		t.Errorf("outside are %v, %v", left, err)
	}
	if err := w.bring(t.Context(), []string{".env"}, nil); err != nil {
		t.Error("without a link:", err)
	}
}

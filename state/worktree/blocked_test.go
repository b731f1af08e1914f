//go:build unix

package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBlocked: a pipe in place of any file that git opens is found, and nothing else is.
func TestBlocked(t *testing.T) {
	for _, name := range []string{".git/HEAD", ".git/config", ".git/index", ".git/packed-refs", ".git/info/attributes",
		".git/info/exclude", ".git/commondir", ".git/refs/x", ".gitattributes", ".gitignore", "a/.gitattributes", "a/b/.gitignore", "a/side/.gitignore"} {
		dir := t.TempDir()
		for _, d := range []string{".git/objects", ".git/refs", ".git/info", "a/b", "a/side"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".git/HEAD"), []byte("ref: refs/x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		tree, side := filepath.Join(dir, "a/b"), filepath.Join(dir, "a/side")
		if err := Blocked(tree, side); err != nil {
			t.Fatalf("nothing is in the way: %v", err)
		}
		p := filepath.Join(dir, name)
		_ = os.Remove(p)
		if err := unix.Mkfifo(p, 0o644); err != nil {
			t.Fatal(err)
		}
		err := Blocked(tree, side)
		var at *fs.PathError
		if !errors.Is(err, errBlocked) || !errors.As(err, &at) || at.Path != p {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Blocked(t.TempDir()); err != nil {
		t.Error(err)
	}
}

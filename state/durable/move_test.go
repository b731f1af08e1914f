package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/state/durable"
)

// TestMove: a file is renamed into folders that are made, replaces nothing, and goes neither through links nor into .git.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	put := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	put("a/x", "one")
	put("b/y", "two")
	put(".git/config", "three")
	outside := t.TempDir()
	if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink("x", filepath.Join(dir, "a", "to-x"))); err != nil {
		t.Fatal(err)
	}
	mover := durable.NewMover(root)
	for _, c := range []struct {
		from, to string
		want     error
	}{
		{"a/x", "b/y", fs.ErrExist}, {"a/none", "b/z", fs.ErrNotExist}, {"a/x", "link/x", durable.ErrRefused},
		{"a/to-x", "b/z", durable.ErrRefused}, {"a/x", ".git/x", durable.ErrRefused}, {".git/config", "c", durable.ErrRefused},
		{"a/x", "../x", durable.ErrRefused}, {"a/x", "c/d/x", nil}, {"a/x", "c/d/z", fs.ErrNotExist},
	} {
		if err := mover.Move(c.from, c.to); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v, want %v", c.from, c.to, err, c.want)
		}
	}
	if err := mover.Sync(); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "c", "d", "x"))
	info, err2 := os.Stat(filepath.Join(dir, "c", "d", "x"))
	if err != nil || err2 != nil || string(data) != "one" || info.Mode().Perm() != 0o640 {
		t.Errorf("after the move: %q, %v, %v, %v", data, info, err, err2)
	}
}

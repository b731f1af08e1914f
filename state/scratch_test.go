package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What a scratch file has can be read in place, also after it was forgotten; an empty one has nothing.
func TestMapScratch(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	f, err := s.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, _, release, err := MapScratch(f)
	if err != nil || len(data) > 0 {
		t.Errorf("an empty one has %d bytes: %v", len(data), err)
	}
	release()
	if _, err := f.WriteString("put aside"); err != nil {
		t.Fatal(err)
	}
	data, forget, release, err := MapScratch(f)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for range 2 {
		if string(data) != "put aside" {
			t.Errorf("it has %q", data)
		}
		forget()
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if string(data) != "put aside" {
		t.Errorf("closed, it has %q", data)
	}
}

// A tree that may only be read has scratch files, too, and nothing is left of them.
func TestScratchOfReadOnlyTree(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	s := open(t, dir)
	for p, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o711, dir: 0o555, elsewhere: 0o777} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(dir, 0o755)
	defer asNobody(t)()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Fatal("the tree can be written:", err)
	}
	f, err := s.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("put aside"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(elsewhere, "none"))
	if f, err := s.Scratch(); err == nil {
		t.Error("there is a scratch file where nothing can be written:", f.Name())
	}
}

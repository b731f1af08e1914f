package state

import (
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
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err == nil {
		t.Skip("SKIPPED: whoever runs this may write everywhere")
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

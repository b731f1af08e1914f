package durable

import (
	"os"
	"path"
	"strings"
	"testing"
)

// Where the temporary folder is on another file system, the content goes through a file beside the target.
func TestPlaceBeside(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("d/f", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWriter(root, "tmp")
	temp, err := w.stage("d/f", wholeWrite([]byte("new")), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.placeBeside("d/f", temp); err != nil {
		t.Fatal(err)
	}
	data, err := root.ReadFile("d/f")
	fi, err2 := root.Lstat("d/f")
	if err != nil || err2 != nil || string(data) != "new" || fi.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v, %v", data, fi.Mode(), err, err2)
	}
	for _, dir := range []string{"d", "tmp"} {
		f, err := root.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := f.Readdirnames(-1)
		_ = f.Close()
		for _, name := range names {
			if path.Join(dir, name) != "d/f" {
				t.Errorf("left %s/%s", dir, name)
			}
		}
	}
}

func TestTempNamesTellTheirMaker(t *testing.T) {
	a, b := tempName(), tempName()
	if a == b {
		t.Errorf("%s twice", a)
	}
	for _, name := range []string{a, b + noteSuffix} {
		id, ok := tempMaker(name)
		if !ok || id.PID != os.Getpid() || id.Gone() {
			t.Errorf("%s: %+v, %v", name, id, ok)
		}
	}
	for _, name := range []string{"", "x", "a-b-c-d.tmp", "1-2-3.tmp", strings.TrimSuffix(a, tempSuffix)} {
		if id, ok := tempMaker(name); ok {
			t.Errorf("%q is said to be of %+v", name, id)
		}
	}
}

// Where the whole file system cannot be synced at once, every file is.
func TestSyncFile(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := syncFile(root, "missing"); err == nil {
		t.Error("a missing file was synced")
	}
	if err := root.WriteFile("f", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syncFile(root, "f"); err != nil {
		t.Error(err)
	}
}

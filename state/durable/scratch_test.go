package durable_test

import (
	"os"
	"testing"

	"reconcile.dev/reconcile/state/durable"
)

// A scratch file has content and no name, and leaves nothing.
func TestScratch(t *testing.T) {
	t.Parallel()
	root, dir := open(t)
	f, err := durable.Scratch(root, "tmp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("far"), 1<<20); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := f.ReadAt(got, 1<<20-1); err != nil || string(got) != "\x00far" {
		t.Errorf("read %q: %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := durable.Sweep(root, "tmp"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir + "/tmp"); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if _, err := durable.Scratch(root, "../out"); err == nil {
		t.Error("a folder outside is taken")
	}
}

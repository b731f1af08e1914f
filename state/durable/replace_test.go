package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/state/durable"
)

func TestReplace(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, want := range []string{"first", "second, longer", "3"} {
		if err := durable.Replace(root, "tmp", "a/b/f", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := root.ReadFile("a/b/f"); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	left, err := os.ReadDir(root.Name() + "/tmp")
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, bad := range []string{"../f", "/f", ".git/f", "a/b"} {
		if err := durable.Replace(root, "tmp", bad, nil); err == nil {
			t.Errorf("%s was written", bad)
		}
	}
}

func TestDraft(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	holds := func(want string) {
		t.Helper()
		if got, err := root.ReadFile("f"); string(got) != want || want != "" && err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	was := ""
	for _, next := range []string{"new", "newer, and longer"} {
		for _, end := range []func(*durable.Draft){
			(*durable.Draft).Discard,
			func(d *durable.Draft) {
				if err := d.Place(); err != nil {
					t.Error(err)
				}
				was = next
			},
		} {
			d, err := durable.NewDraft(root, "tmp", "f", slices.Values([][]byte{[]byte(next[:1]), nil, []byte(next[1:])}))
			if err != nil {
				t.Fatal(err)
			}
			holds(was)
			end(d)
			holds(was)
			d.Discard()
		}
	}
	if left, err := os.ReadDir(root.Name() + "/tmp"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A reader beside writers finds one of the contents, never a part and never nothing.
func TestReplaceBesideReaders(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	contents := []string{string(make([]byte, 100_000)), "short"}
	if err := durable.Replace(root, "tmp", "f", []byte(contents[0])); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range contents {
		wg.Go(func() {
			for range 200 {
				if err := durable.Replace(root, "tmp", "f", []byte(c)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 400 {
		got, err := root.ReadFile("f")
		if err != nil || string(got) != contents[0] && string(got) != contents[1] {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	wg.Wait()
}

// Of those who add a file of one name at once, one does, and all others are told.
func TestAdd(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var wg sync.WaitGroup
	var added atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			switch err := durable.Add(root, "tmp", "a/f", []byte{byte('0' + i)}); {
			case err == nil:
				added.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := root.ReadFile("a/f"); added.Load() != 1 || err != nil || len(got) != 1 {
		t.Errorf("%d have added it, it holds %q, %v", added.Load(), got, err)
	}
	if left, err := os.ReadDir(root.Name() + "/tmp"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := durable.Add(root, "tmp", "../f", nil); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("outside: %v", err)
	}
}

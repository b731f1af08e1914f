package memstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// disturbed is a hold on a tree in whose captures something happens after they have begun, and before anything of them
// is on the disk.
func disturbed(x *tree, happens func(path string)) *memstore.Files {
	x.t.Helper()
	store, err := state.Open(x.dir, state.Options{Kinds: controllers.Schemas(), Now: func() time.Time { return noon }, FileNow: time.Now})
	if err != nil {
		x.t.Fatal(err)
	}
	files := memstore.Open(store, memstore.Options{
		Now: func() time.Time { return noon }, Kinds: controllers.Schemas(), Warn: func(s string) { x.told = append(x.told, s) },
	})
	files.BeforeEncoding(func(name string) { happens("specs/observations/" + name + ".yaml") })
	x.t.Cleanup(func() {
		if err := errors.Join(files.Close(), store.Close()); err != nil {
			x.t.Error(err)
		}
	})
	return files
}

// What happens to the manifest or the issue file while a capture is made is in both afterwards, beside the capture.
func TestDraftOutOfDate(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files"))
	x.capture(spec("engineer", 2, noon, "Tests use real files"))
	n := 0
	for name, happens := range map[string]func(){
		"nothing": func() {},
		"a capture into the issue": func() {
			x.capture(spec("tester", 1, noon.Add(time.Duration(n)*time.Minute), fmt.Sprintf("Saw another thing, %d", n)))
		},
		"a capture into another issue": func() {
			x.capture(spec("tester", 2, noon.Add(time.Duration(n)*time.Minute), fmt.Sprintf("Saw yet another thing, %d", n)))
		},
		"the manifest goes": func() {
			if err := os.Remove(filepath.Join(x.dir, manifestPath)); err != nil {
				t.Error(err)
			}
		},
		"the manifest is damaged": func() { x.write(manifestPath, []byte("{}")) },
		"the manifest is changed in place, with the same size": func() {
			f, err := os.OpenFile(filepath.Join(x.dir, manifestPath), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			const key = `"summary":"`
			_, err = f.WriteAt([]byte("#"), int64(bytes.LastIndex(x.read(manifestPath), []byte(key))+len(key)))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		},
		"the cache goes": func() {
			if err := os.RemoveAll(filepath.Join(x.dir, ".reconcile/memory")); err != nil {
				t.Error(err)
			}
		},
	} {
		files := disturbed(x, func(string) { happens() })
		for range 5 {
			n++
			x.told = nil
			content := fmt.Sprintf("Learned thing %d while this happened: %s", n, name)
			c, err := files.Capture(t.Context(), spec("engineer", 1, noon.Add(time.Duration(n)*time.Hour), content))
			if err != nil || c.Held || len(c.Observations) != 1 {
				t.Fatalf("%s: %+v, %v", name, c, err)
			}
			m := x.check()
			if last := m.Entries[len(m.Entries)-1]; !bytes.Contains(x.read(manifestPath), []byte(c.Observations[0].ID)) {
				t.Errorf("%s: the manifest ends with %s, and has no %s", name, last.ID, c.Observations[0].ID)
			}
		}
		if err := errors.Join(files.Close(), x.Close()); err != nil {
			t.Error(err)
		}
		x.noLitter(name)
	}
}

// noLitter checks that nothing is left of new contents that were dropped.
func (x *tree) noLitter(what string) {
	x.t.Helper()
	left, err := os.ReadDir(filepath.Join(x.dir, ".reconcile/tmp"))
	if err != nil || len(left) > 0 {
		x.t.Errorf("%s: left behind %v, %v", what, left, err)
	}
}

// A capture that cannot be kept changes nothing: what was prepared beside it is dropped.
func TestCaptureThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		happens func(t *testing.T, path string)
		want    error
	}{
		"another text has its name": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("something else\n"), 0o666); err != nil {
				t.Error(err)
			}
		}, memstore.ErrInvalid},
		"a folder has its name": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o777); err != nil {
				t.Error(err)
			}
		}, nil},
		"its folder is a file": {func(t *testing.T, path string) {
			if err := errors.Join(os.RemoveAll(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o666)); err != nil {
				t.Error(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.capture(spec("engineer", 1, noon, "Chose files"))
			was, manifest := x.read("state/memory/issue-1.json"), x.read(manifestPath)
			files := disturbed(x, func(path string) { row.happens(t, filepath.Join(x.dir, path)) })
			for _, issue := range []int{1, 2} {
				c, err := files.Capture(t.Context(), spec("engineer", issue, noon, "Locks have an order"))
				if err == nil || row.want != nil && !errors.Is(err, row.want) || c.Held || len(c.Observations) > 0 {
					t.Errorf("%+v, %v", c, err)
				}
			}
			if !bytes.Equal(x.read("state/memory/issue-1.json"), was) || !bytes.Equal(x.read(manifestPath), manifest) {
				t.Error("the memory was changed")
			}
			if _, err := os.Stat(filepath.Join(x.dir, "state/memory/issue-2.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("another issue file: %v", err)
			}
			if len(x.told) > 0 {
				t.Errorf("told %q", x.told)
			}
			x.noLitter(name)
		})
	}
}

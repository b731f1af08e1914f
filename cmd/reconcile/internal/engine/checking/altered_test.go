package checking

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
)

// A file has changed if its content is another one, it is gone or new, or can be run now; not if it was only written anew.
func TestAltered(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("a line\n"), comparedBytes/7+1)
	put := func(name string, data []byte) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"a/again", "a/forged", "a/gone", "a/large", "a/larger", "a/run", "a/same", "a/written", "new", "never"}
	for _, name := range names[:8] {
		put(name, []byte(name))
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"a/large", "a/larger"} {
		put(name, large)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	before, err := remember(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Minute)
	if got, err := before.altered(began); len(got) > 0 || err != nil {
		t.Fatal("before anything changed:", got, err)
	}
	put("a/again", []byte("a/again"))
	put("a/forged", []byte("b/forged"))
	put("a/written", []byte("b/written"))
	put("a/larger", large)
	put("new", nil)
	put("another", nil)
	for _, err := range []error{os.Remove(filepath.Join(dir, "a/gone")), os.Chmod(filepath.Join(dir, "a/run"), 0o700),
		os.Chtimes(filepath.Join(dir, "a/forged"), old, old), os.Chtimes(filepath.Join(dir, "a/run"), old, old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := before.altered(began)
	if err != nil {
		t.Fatal(err)
	}
	var found, unknown []string
	for _, a := range got {
		if found = append(found, a.File); a.At.IsZero() {
			unknown = append(unknown, a.File)
		}
	}
	if want := []string{"a/forged", "a/gone", "a/larger", "a/run", "a/written", "new"}; !slices.Equal(found, want) {
		t.Errorf("changed: %q, want %q", found, want)
	}
	if want := []string{"a/forged", "a/gone", "a/run"}; !slices.Equal(unknown, want) {
		t.Errorf("the time is unknown of %q, want %q", unknown, want)
	}
	if _, err := remember(filepath.Join(dir, "nowhere"), nil); err == nil {
		t.Error("a folder that is not there has files")
	}
	var none []checks.Altered
	if empty, err := remember(dir, nil); err != nil {
		t.Error(err)
	} else if none, err = empty.altered(began); len(none) > 0 || err != nil {
		t.Error(none, err)
	}
}

// What tools left, and git does not track, is no file of the project; the mark of a cache itself is.
func TestWithoutCaches(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"CACHEDIR.TAG": cacheSignature, "target/CACHEDIR.TAG": cacheSignature + "\n# cargo", "src/CACHEDIR.TAG": "no mark"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	untracked := []string{"CACHEDIR.TAG", "new.rs", "src/CACHEDIR.TAG", "src/new.rs", "target/CACHEDIR.TAG", "target/debug/a.d", "target/info.json", "targets/a.rs", "web/__pycache__/a.pyc"}
	all := append(slices.Clone(untracked), "old/__pycache__/a.pyc", "src/lib.rs", "target/kept.rs")
	want := []string{"CACHEDIR.TAG", "new.rs", "src/CACHEDIR.TAG", "src/new.rs", "target/CACHEDIR.TAG", "targets/a.rs", "old/__pycache__/a.pyc", "src/lib.rs", "target/kept.rs"}
	if got := WithoutCaches(dir, all, untracked); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

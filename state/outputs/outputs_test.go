package outputs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

func write(t *testing.T, root *os.Root, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.WriteFile(name, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, root *os.Root, name string, limit int64) schemas.Output {
	t.Helper()
	o, err := Put(t.Context(), root, root, name, limit)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRestore writes back what is missing, with its mode, and nothing else.
func TestRestore(t *testing.T) {
	root, _ := open(t)
	write(t, root, "out/app", "one", 0o755)
	o := put(t, root, "out/app", 10)
	if o.Size != 3 || o.Mode != schemas.OutputExecutable || !Has(root, o) {
		t.Errorf("%+v, in the cache: %t", o, Has(root, o))
	}
	if err := Restore(t.Context(), root, o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("restored over a file: %v", err)
	}
	// A program that writes in place changes its file and not the cache.
	write(t, root, "out/app", "two", 0o755)
	if err := errors.Join(root.RemoveAll("out"), Restore(t.Context(), root, o)); err != nil {
		t.Fatal(err)
	}
	data, err := root.ReadFile("out/app")
	fi, err2 := root.Stat("out/app")
	if err := errors.Join(err, err2); err != nil || string(data) != "one" || fi.Mode().Perm()&0o100 == 0 {
		t.Errorf("restored %q, %v: %v", data, fi.Mode(), err)
	}
}

// TestRestoreRefusesLinks: neither a link in place of a folder nor a path out of the tree is followed.
func TestRestoreRefusesLinks(t *testing.T) {
	root, dir := open(t)
	write(t, root, "out/app", "one", 0o644)
	o := put(t, root, "out/app", 10)
	elsewhere := t.TempDir()
	if err := errors.Join(root.RemoveAll("out"), os.Mkdir(filepath.Join(dir, "real"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"real", elsewhere} {
		if err := os.Symlink(target, filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		err := Restore(t.Context(), root, o)
		inside, _ := os.ReadDir(filepath.Join(dir, "real"))
		outside, _ := os.ReadDir(elsewhere)
		if err == nil || len(inside)+len(outside) > 0 {
			t.Errorf("through a link to %s: %v, wrote %v %v", target, err, inside, outside)
		}
		if err := root.Remove("out"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"../app", "/app", ".git/hooks/post-commit", "a/.GIT/x"} {
		o.Path = name
		if err := Restore(t.Context(), root, o); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
}

// TestWrongEntry: an entry is what its name says, or it is missing.
func TestWrongEntry(t *testing.T) {
	root, _ := open(t)
	write(t, root, "app", "one", 0o644)
	o := put(t, root, "app", 10)
	for name, text := range map[string]string{"another content": "two", "torn": "on", "longer": "one and more"} {
		write(t, root, entry(o), text, 0o644)
		if err := root.RemoveAll("app"); err != nil {
			t.Fatal(err)
		}
		if s, err := Verify(t.Context(), root); err != nil || len(s.Wrong) != 1 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if err := Restore(t.Context(), root, o); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := root.Lstat("app"); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
	if err := Fill(t.Context(), root, o, strings.NewReader("two")); !errors.Is(err, ErrMissing) {
		t.Errorf("filled with another content: %v", err)
	}
	o.Digest = "sha256:../../../etc/passwd"
	if Has(root, o) || Restore(t.Context(), root, o) == nil {
		t.Error("a digest that is a path was taken for an entry")
	}
}

// TestSweep bounds the cache: what nobody names goes, and then the oldest; what is larger than the limit never comes.
func TestSweep(t *testing.T) {
	root, _ := open(t)
	var all []schemas.Output
	for i, text := range []string{"one", "two", "six"} {
		write(t, root, "f", text, 0o644)
		all = append(all, put(t, root, "f", 10))
		at := time.Date(2026, 2, 1+i, 0, 0, 0, 0, time.UTC)
		if err := root.Chtimes(entry(all[i]), at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, "large", "0123456789ab", 0o644)
	if o := put(t, root, "large", 10); o.Size != 12 || Has(root, o) {
		t.Errorf("%+v is in the cache", o)
	}
	named := func(name func(schemas.Output)) {
		name(all[0])
		name(all[1])
	}
	for _, c := range []struct {
		limit int64
		want  string
	}{{10, "true true false"}, {5, "false true false"}, {0, "false false false"}} {
		if err := Sweep(root, c.limit, named); err != nil {
			t.Fatal(err)
		}
		var has []string
		for _, o := range all {
			has = append(has, map[bool]string{true: "true", false: "false"}[Has(root, o)])
		}
		if got := strings.Join(has, " "); got != c.want {
			t.Errorf("at most %d bytes: %s, want %s", c.limit, got, c.want)
		}
	}
}

// endless counts what is read of it.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.n += int64(len(p)); e.n > 1<<30 {
		return 0, errors.New("1 GiB was read")
	}
	return len(p), nil
}

// TestFillTrustsNobody takes nothing into the cache but the content that is on record, and reads little more than that.
func TestFillTrustsNobody(t *testing.T) {
	root, _ := open(t)
	write(t, root, "app", "one", 0o644)
	o := put(t, root, "app", 0)
	for _, text := range []string{"two", "on", "one and more", ""} {
		if err := Fill(t.Context(), root, o, strings.NewReader(text)); !errors.Is(err, ErrMissing) || Has(root, o) {
			t.Errorf("filled with %q: %v", text, err)
		}
	}
	var e endless
	if err := Fill(t.Context(), root, o, &e); !errors.Is(err, ErrMissing) || e.n > 1<<20 {
		t.Errorf("%d bytes were read: %v", e.n, err)
	}
	if err := Fill(t.Context(), root, o, strings.NewReader("one")); err != nil || !Has(root, o) {
		t.Errorf("not filled: %v", err)
	}
}

// TestRead finds the content of an output in the cache, else in the work tree, and nothing else.
func TestRead(t *testing.T) {
	root, _ := open(t)
	write(t, root, "app", "one", 0o644)
	o := put(t, root, "app", 10)
	for _, c := range []struct{ cache, file, want string }{
		{"one", "two", "one"}, {"two", "one", "one"}, {"", "one", "one"}, {"two", "two", ""}, {"", "more than one", ""},
	} {
		write(t, root, "app", c.file, 0o644)
		write(t, root, entry(o), c.cache, 0o644)
		data, err := Read(t.Context(), root, o)
		if string(data) != c.want || (c.want == "") != errors.Is(err, ErrMissing) {
			t.Errorf("%+v: %q, %v", c, data, err)
		}
	}
}

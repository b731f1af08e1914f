package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/proc"
)

const tmp = ".reconcile/tmp"

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

// files returns path → content of every file below root, so that litter shows, and folders as path → "/".
func files(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || p == "." || p == tmp || p == path.Dir(tmp):
			return err
		case d.IsDir():
			got[p] = "/"
			return nil
		case d.Type().IsRegular():
			data, err := root.ReadFile(p)
			got[p] = string(data)
			return err
		}
		got[p] = d.Type().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func want(t *testing.T, root *os.Root, want map[string]string) {
	t.Helper()
	got := files(t, root)
	for p, data := range want {
		if got[p] != data {
			t.Errorf("%s: %q, want %q", p, got[p], data)
		}
	}
	for p, data := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: %q should not be there", p, data)
		}
	}
}

func write(t *testing.T, root *os.Root, path, data string) {
	t.Helper()
	if err := durable.WriteFile(root, tmp, path, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFile(t *testing.T) {
	root, _ := open(t)
	write(t, root, "top.json", "1")
	write(t, root, "a/b/c.json", "2")
	write(t, root, "a/b/c.json", "3")
	write(t, root, "a/b/empty", "")
	want(t, root, map[string]string{
		"top.json": "1", "a": "/", "a/b": "/", "a/b/c.json": "3", "a/b/empty": "",
	})
}

func TestWriteFileKeepsMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	root, dir := open(t)
	write(t, root, "new", "1")
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o666, 0o440} {
		if err := os.Chmod(filepath.Join(dir, "new"), mode); err != nil {
			t.Fatal(err)
		}
		write(t, root, "new", mode.String())
		fi, err := root.Lstat("new")
		if err != nil || fi.Mode() != mode {
			t.Errorf("mode %v became %v, %v", mode, fi.Mode(), err)
		}
	}
}

func TestRefusedPaths(t *testing.T) {
	root, dir := open(t)
	write(t, root, "real/file", "kept")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"dirlink": "real", "filelink": "real/file", "out": outside, "dangling": "no"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links:", err)
		}
	}
	before := files(t, root)
	for _, p := range []string{
		"", ".", "..", "../x", "/x", "a/../b", "a//b", "./a", "a/", "real", "dirlink/file", "dirlink/new", "filelink", "out",
		"dangling", "real/file/below", ".git/config", "a/.git/x", ".GIT/x", ".git", "a/.Git./x", "git~1/x", ".git::$DATA/x",
	} {
		if err := durable.WriteFile(root, tmp, p, []byte("bad")); !errors.Is(err, durable.ErrRefused) {
			t.Errorf("WriteFile(%q) = %v, want refused", p, err)
		} else if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not name %q", err, p)
		}
		if err := durable.Apply(root, tmp, []durable.Op{{Path: p}}); !errors.Is(err, durable.ErrRefused) {
			t.Errorf("Apply(remove %q) = %v, want refused", p, err)
		}
	}
	if err := durable.WriteFile(root, "dirlink/tmp", "x", nil); !errors.Is(err, durable.ErrRefused) {
		t.Errorf("temporary folder behind a symbolic link: %v", err)
	}
	want(t, root, before)
	if data, _ := os.ReadFile(outside); string(data) != "kept" {
		t.Errorf("outside file changed to %q", data)
	}
}

func TestStageIsInvisibleUntilCommit(t *testing.T) {
	root, _ := open(t)
	write(t, root, "f", "old")
	s, err := durable.Stage(root, tmp, "f", []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := root.ReadFile("f"); string(data) != "old" {
		t.Errorf("after Stage: %q", data)
	}
	s.Discard()
	s.Discard()
	want(t, root, map[string]string{"f": "old"})
	if s, err = durable.Stage(root, tmp, "f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Discard()
	want(t, root, map[string]string{"f": "new"})
}

func TestApply(t *testing.T) {
	for _, n := range []int{1, 16, 17, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			root, _ := open(t)
			var ops []durable.Op
			tree := map[string]string{"keep": "/", "keep/y": "y", "again": "2"}
			write(t, root, "gone/deep/x", "x")
			write(t, root, "keep/x", "x")
			write(t, root, "keep/y", "y")
			ops = append(ops, durable.Op{Path: "again", Data: []byte("1")}, durable.Op{Path: "again"})
			for i := range n {
				p := fmt.Sprintf("d%d/f%d", i%20, i)
				ops = append(ops, durable.Op{Path: p, Data: []byte(p)})
				tree[p], tree[path.Dir(p)] = p, "/"
			}
			ops = append(ops, durable.Op{Path: "gone/deep/x", Stop: "."}, durable.Op{Path: "keep/x", Stop: "."},
				durable.Op{Path: "never/was", Stop: "."}, durable.Op{Path: "again", Data: []byte("2")})
			if err := durable.Apply(root, tmp, ops); err != nil {
				t.Fatal(err)
			}
			want(t, root, tree)
		})
	}
}

// What is staged changes nothing until it is committed, and leaves nothing when it is dropped.
func TestStageAll(t *testing.T) {
	ops := []durable.Op{{Path: "f", Data: []byte("new")}, {Path: "gone"}, {Path: "d/g", Data: []byte("more")}}
	was := map[string]string{"f": "old", "gone": "x"}
	for what, end := range map[string]func(*durable.Staged) error{
		"commit":  (*durable.Staged).Commit,
		"discard": func(s *durable.Staged) error { s.Discard(); return nil },
	} {
		root, _ := open(t)
		for p, text := range was {
			write(t, root, p, text)
		}
		s, err := durable.StageAll(root, tmp, ops)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := root.ReadFile("f"); string(data) != "old" || err != nil {
			t.Errorf("%s: before it, there is %q, %v", what, data, err)
		}
		if err := end(s); err != nil {
			t.Error(what, err)
		}
		s.Discard()
		if what == "commit" {
			want(t, root, map[string]string{"f": "new", "d": "/", "d/g": "more"})
		} else {
			want(t, root, was)
		}
	}
}

// A batch that grows is like one that is given whole, also when folders appear and go while it does.
func TestBatchGrows(t *testing.T) {
	for _, n := range []int{3, 40} {
		root, _ := open(t)
		write(t, root, "d/old", "old")
		b := durable.Begin(root, tmp)
		files := map[string]string{"d": "/"}
		for i := range n {
			p := fmt.Sprintf("d/%d", i)
			files[p] = "new"
			if err := b.Add(durable.Op{Path: p, Data: []byte("new")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Add(durable.Op{Path: "../out", Data: []byte("x")}); !errors.Is(err, durable.ErrRefused) {
			t.Errorf("outside: %v", err)
		}
		if err := root.RemoveAll("d"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Sync(), b.Commit()); err != nil {
			t.Error(err)
		}
		want(t, root, files)
	}
}

func TestRemoveKeepsStop(t *testing.T) {
	for stop, left := range map[string]map[string]string{
		"":      {"a": "/", "a/b": "/", "a/b/c": "/"},
		"a":     {"a": "/"},
		"a/b":   {"a": "/", "a/b": "/"},
		"a/b/c": {"a": "/", "a/b": "/", "a/b/c": "/"},
		"other": {"a": "/", "a/b": "/", "a/b/c": "/"},
		".":     {},
	} {
		root, _ := open(t)
		write(t, root, "a/b/c/f", "x")
		if err := durable.Apply(root, tmp, []durable.Op{{Path: "a/b/c/f", Stop: stop}}); err != nil {
			t.Errorf("stop %q: %v", stop, err)
		}
		want(t, root, left)
	}
}

// A bad change leaves all files of the batch as they were: contents are staged before anything is renamed.
func TestApplyStagesFirst(t *testing.T) {
	for _, n := range []int{2, 40} {
		root, _ := open(t)
		write(t, root, "f0", "old")
		if err := root.Mkdir("folder", 0o755); err != nil {
			t.Fatal(err)
		}
		var ops []durable.Op
		for i := range n {
			ops = append(ops, durable.Op{Path: fmt.Sprintf("f%d", i), Data: []byte("new")})
		}
		err := durable.Apply(root, tmp, append(ops, durable.Op{Path: "folder", Data: []byte("x")}))
		if !errors.Is(err, durable.ErrRefused) || !strings.Contains(err.Error(), "folder") {
			t.Errorf("Apply = %v, want it refused and the path named", err)
		}
		want(t, root, map[string]string{"f0": "old", "folder": "/"})
	}
}

func TestConcurrentWritersAndFolderRemovers(t *testing.T) {
	root, _ := open(t)
	var wg sync.WaitGroup
	for i := range 4 {
		p := fmt.Sprintf("shared/deep/f%d", i)
		wg.Go(func() {
			for range 20 {
				if err := durable.WriteFile(root, tmp, p, []byte(p)); err != nil {
					t.Error(err)
				}
				if err := durable.Apply(root, tmp, []durable.Op{{Path: p, Stop: "."}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want(t, root, map[string]string{})
}

func TestSweep(t *testing.T) {
	self := proc.Self()
	if self.Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	root, dir := open(t)
	if err := durable.Sweep(root, tmp); err != nil {
		t.Errorf("Sweep without a folder: %v", err)
	}
	s, err := durable.Stage(root, tmp, "live", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	dead := func(tag, n string) string { return fmt.Sprintf("%s-%d-%d-%s.tmp", tag, self.PID, self.Start-1, n) }
	mine, other := dead(self.Tag, "1"), dead("dashed-tag", "2")
	put := func(name, data string) {
		t.Helper()
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(tmp+"/"+mine, "x")
	put(tmp+"/"+dead(self.Tag, "3")+".at", "sub/.f."+dead(self.Tag, "3"))
	put("sub/.f."+dead(self.Tag, "3"), "x")
	put(tmp+"/"+dead(self.Tag, "4")+".at", "sub/precious") // not the name of a temporary file
	put("sub/precious", "x")
	put(tmp+"/"+other, "young, of a stranger")
	put(tmp+"/"+dead("dashed-tag", "5"), "old, of a stranger")
	put(tmp+"/notes.txt", "not ours")
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, tmp, dead("dashed-tag", "5")), long, long); err != nil {
		t.Fatal(err)
	}
	if err := durable.Sweep(root, tmp); err != nil {
		t.Fatal(err)
	}
	left, err := fs.ReadDir(root.FS(), tmp)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if len(names) != 3 || !strings.Contains(strings.Join(names, " "), other) {
		t.Errorf("left over: %v; want the live one, %s and notes.txt", names, other)
	}
	want := []string{"sub/precious"}
	if got, _ := fs.Glob(root.FS(), "sub/*"); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("beside the target: %v, want %v", got, want)
	}
	if err := s.Commit(); err != nil {
		t.Errorf("the live writer was disturbed: %v", err)
	}
}

func BenchmarkWriteFile(b *testing.B) {
	root, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for b.Loop() {
		if err := durable.WriteFile(root, tmp, "state/f.json", []byte("content")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply100(b *testing.B) {
	root, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	var ops []durable.Op
	for i := range 100 {
		ops = append(ops, durable.Op{Path: fmt.Sprintf("state/d%d/f%d.json", i%3, i), Data: []byte("content")})
	}
	for b.Loop() {
		if err := durable.Apply(root, tmp, ops); err != nil {
			b.Fatal(err)
		}
	}
}

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// onDisk starts a watcher with the real notifier on a tree with the given folders, and receives its first hint.
func onDisk(t *testing.T, paths []string, folders ...string) (string, *Watcher) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range folders {
		mkdir(t, root, dir)
	}
	w, err := New(root, Options{Paths: paths, Debounce: 10 * ms, Rescan: time.Hour,
		Warn: func(err error) { t.Errorf("warning: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if h := <-w.Hints(); !h.Full {
		t.Fatalf("first hint %+v, want a full one", h)
	}
	return root, w
}

// await receives hints until one covers path.
func await(t *testing.T, w *Watcher, path string) {
	t.Helper()
	patience := time.After(2 * time.Minute)
	for {
		select {
		case h := <-w.Hints():
			if h.Full || slices.Contains(h.Paths, path) {
				return
			}
		case <-patience:
			t.Fatalf("no hint for %s", path)
		}
	}
}

// awaitOnly receives hints until one covers path, and fails when one of them covers something else.
func awaitOnly(t *testing.T, w *Watcher, path string) {
	t.Helper()
	select {
	case h := <-w.Hints():
		if h.Full || !slices.Equal(h.Paths, []string{path}) {
			t.Fatalf("hint %+v, want only %s", h, path)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("no hint for %s", path)
	}
}

func rename(t *testing.T, root, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsWritten(t *testing.T) {
	root, w := onDisk(t, []string{"specs", "reconcile.yaml"}, "specs/dags", "other")
	put(t, root, "other/x.yaml", "text")
	put(t, root, "specs/dags/.a.yaml.swp", "text")
	put(t, root, "specs/dags/a.yaml", "text")
	awaitOnly(t, w, "specs/dags/a.yaml")
	put(t, root, "readme", "text")
	put(t, root, "reconcile.yaml", "text")
	awaitOnly(t, w, "reconcile.yaml")
}

func TestFileIsSavedByRename(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs", "tmp")
	put(t, root, "specs/a.yaml~", "text")
	rename(t, root, "specs/a.yaml~", "specs/a.yaml")
	awaitOnly(t, w, "specs/a.yaml")
	put(t, root, "tmp/x", "text")
	rename(t, root, "tmp/x", "specs/a.yaml")
	awaitOnly(t, w, "specs/a.yaml")
}

func TestFileIsRemoved(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs")
	put(t, root, "specs/a.yaml", "text")
	await(t, w, "specs/a.yaml")
	if err := os.Remove(filepath.Join(root, "specs/a.yaml")); err != nil {
		t.Fatal(err)
	}
	awaitOnly(t, w, "specs/a.yaml")
}

func TestModeAloneIsNoChange(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs")
	put(t, root, "specs/a.yaml", "text")
	await(t, w, "specs/a.yaml")
	if err := os.Chmod(filepath.Join(root, "specs/a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, root, "specs/b.yaml", "text")
	awaitOnly(t, w, "specs/b.yaml")
}

// TestFolderIsMadeWithFilesInside makes nested folders and a file faster than any watch can follow; then a file that
// only a watch on the innermost folder can see.
func TestFolderIsMadeWithFilesInside(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs")
	mkdir(t, root, "specs/a/b/c")
	put(t, root, "specs/a/b/c/x.yaml", "text")
	await(t, w, "specs/a/b/c/x.yaml")
	settle(t, root, w)
	put(t, root, "specs/a/b/c/y.yaml", "text")
	await(t, w, "specs/a/b/c/y.yaml")
}

// settle waits until all events so far have been reported: a marker file is hinted after them.
func settle(t *testing.T, root string, w *Watcher) {
	t.Helper()
	put(t, root, "specs/marker.yaml", time.Now().String())
	for {
		select {
		case h := <-w.Hints():
			if slices.Contains(h.Paths, "specs/marker.yaml") {
				return
			}
			put(t, root, "specs/marker.yaml", time.Now().String())
		case <-time.After(2 * time.Minute):
			t.Fatal("no hint for the marker")
		}
	}
}

func TestWatchedFolderComesLater(t *testing.T) {
	root, w := onDisk(t, []string{"work/specs"})
	mkdir(t, root, "work/specs")
	await(t, w, "work/specs")
	put(t, root, "work/specs/a.yaml", "text")
	await(t, w, "work/specs/a.yaml")
}

func TestWatchedFolderIsReplaced(t *testing.T) {
	for name, vanish := range map[string]func(t *testing.T, root string){
		"removed": func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, "specs")); err != nil {
				t.Fatal(err)
			}
		},
		"moved away": func(t *testing.T, root string) { rename(t, root, "specs", "old") },
	} {
		t.Run(name, func(t *testing.T) {
			root, w := onDisk(t, []string{"specs"}, "specs/dags")
			vanish(t, root)
			await(t, w, "specs")
			mkdir(t, root, "specs/dags")
			put(t, root, "specs/dags/a.yaml", "text")
			await(t, w, "specs/dags/a.yaml")
			settle(t, root, w)
			put(t, root, "specs/dags/b.yaml", "text")
			await(t, w, "specs/dags/b.yaml")
		})
	}
}

// TestMovedFolderIsForgotten: what happens in a folder that left the watched part is nobody's business.
func TestMovedFolderIsForgotten(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs/dags")
	rename(t, root, "specs/dags", "old")
	await(t, w, "specs/dags")
	settle(t, root, w)
	put(t, root, "old/a.yaml", "text")
	put(t, root, "specs/b.yaml", "text")
	awaitOnly(t, w, "specs/b.yaml")
}

func TestManyFilesAtOnce(t *testing.T) {
	root, w := onDisk(t, []string{"specs"}, "specs")
	for i := range 3 * maxPaths {
		put(t, root, "specs/"+strings.Repeat("x", i%40+1)+".yaml", "text")
	}
	want := map[string]bool{}
	for i := range 40 {
		want["specs/"+strings.Repeat("x", i+1)+".yaml"] = true
	}
	for patience := time.After(2 * time.Minute); len(want) > 0; {
		select {
		case h := <-w.Hints():
			for _, p := range h.Paths {
				delete(want, p)
			}
			if h.Full {
				clear(want)
			}
		case <-patience:
			t.Fatalf("no hint for %d files, for example %v", len(want), want)
		}
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	root := t.TempDir()
	mkdir(t, root, "specs")
	for range 10 {
		w, err := New(root, Options{Paths: []string{"specs"}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, root, "specs/a.yaml", "text")
		w.Close()
	}
	// The reader of fsnotify says that it has ended in its last deferred call, a moment before it has: let it.
	left := ""
	for range 1000 {
		if left = goroutinesOfWatchers(); left == "" {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines are left:\n%s", left)
}

// goroutinesOfWatchers are the stacks of all goroutines, if a watcher's is among them.
func goroutinesOfWatchers() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, name := range []string{"watch.(*Watcher).run", "fsnotify.(*inotify)"} {
		if strings.Contains(string(stacks), name) {
			return string(stacks)
		}
	}
	return ""
}

// BenchmarkHint saves a file by rename and reports how much later than the debounce the hint for it comes.
func BenchmarkHint(b *testing.B) {
	root := b.TempDir()
	for i := range 100 {
		if err := os.MkdirAll(filepath.Join(root, "specs", fmt.Sprint(i)), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	const debounce = 5 * ms
	w, err := New(root, Options{Paths: []string{"specs"}, Debounce: debounce, Rescan: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	<-w.Hints()
	var late []time.Duration
	temp, file := filepath.Join(root, "new"), filepath.Join(root, "specs", "7", "a.yaml")
	for b.Loop() {
		if err := os.WriteFile(temp, []byte("text"), 0o644); err != nil {
			b.Fatal(err)
		}
		saved := time.Now()
		if err := os.Rename(temp, file); err != nil {
			b.Fatal(err)
		}
		<-w.Hints()
		late = append(late, time.Since(saved)-debounce)
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs-late")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs-late")
}

// TestSkippedFolders: neither notifications nor polls look into what is to be skipped.
func TestSkippedFolders(t *testing.T) {
	for _, notified := range []bool{true, false} {
		root := t.TempDir()
		mkdir(t, root, "src/deep")
		mkdir(t, root, "modules/deep")
		o := Options{Paths: []string{"."}, Debounce: 10 * ms, Poll: 10 * ms, Rescan: time.Hour,
			Skip: func(dir string) bool { return dir == "modules" || dir == "src/later" }}
		if !notified {
			o.open = func() (notifier, error) { return nil, fmt.Errorf("none") }
		}
		w, err := New(root, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		<-w.Hints()
		if notified {
			mkdir(t, root, "src/later")
			<-w.Hints()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if w.watched["src/deep"] != notified || w.watched["modules"] || w.watched["modules/deep"] || w.watched["src/later"] {
			t.Errorf("watched %v", w.watched)
		}
		sum := func() uint64 {
			w.stop = make(chan struct{}) // it was closed, and a fingerprint would break off
			n, _ := w.fingerprint()
			return n
		}
		a := sum()
		if err := os.WriteFile(filepath.Join(root, "modules", "deep", "x"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if b := sum(); a != b {
			t.Error("a poll looks into a folder that is to be skipped")
		}
		if err := os.WriteFile(filepath.Join(root, "src", "deep", "x"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if b := sum(); a == b {
			t.Error("a poll misses a file in a folder that is watched")
		}
	}
}

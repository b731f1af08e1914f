package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fake is a notifier whose events a test makes up. Its channels belong to the bubble of the test.
type fake struct {
	events chan fsnotify.Event
	errs   chan error
	added  []string // below the root, in order; only the watcher's goroutine writes, the test reads when that is idle
	limit  int      // watches that are to be had; 0: any number
	root   string
	closed bool
}

func (f *fake) Add(dir string) error {
	if f.limit > 0 && len(f.added) == f.limit {
		return syscall.ENOSPC
	}
	rel, err := filepath.Rel(f.root, dir)
	f.added = append(f.added, filepath.ToSlash(rel))
	return err
}

func (f *fake) Remove(dir string) error {
	rel, err := filepath.Rel(f.root, dir)
	f.added = slices.DeleteFunc(f.added, func(a string) bool { return a == filepath.ToSlash(rel) })
	return err
}

func (f *fake) Events() <-chan fsnotify.Event { return f.events }
func (f *fake) Errors() <-chan error          { return f.errs }
func (f *fake) Close() error                  { f.closed = true; return nil }

func (f *fake) write(path string) {
	f.events <- fsnotify.Event{Name: filepath.Join(f.root, filepath.FromSlash(path)), Op: fsnotify.Write}
}

// bubble runs test with a watcher on specs, on a fake notifier and fake time, whose first hint was received.
func bubble(t *testing.T, o Options, limit int, test func(*testing.T, *Watcher, *fake)) {
	root := t.TempDir()
	mkdir(t, root, "specs/dags")
	synctest.Test(t, func(t *testing.T) {
		f := &fake{events: make(chan fsnotify.Event), errs: make(chan error), root: root, limit: limit}
		o.open = func() (notifier, error) { return f, nil }
		if o.Paths == nil {
			o.Paths = []string{"specs"}
		}
		w, err := New(root, o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		start := time.Now()
		if h := <-w.Hints(); !h.Full || time.Since(start) != 0 {
			t.Errorf("first hint %+v after %v, want a full one at once", h, time.Since(start))
		}
		test(t, w, f)
	})
}

func mkdir(t *testing.T, root, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, root, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(path)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantHint(t *testing.T, w *Watcher, after time.Duration, want Hint) {
	t.Helper()
	start := time.Now()
	h := <-w.Hints()
	if took := time.Since(start); took != after || h.Full != want.Full || !slices.Equal(h.Paths, want.Paths) {
		t.Errorf("hint %+v after %v, want %+v after %v", h, took, want, after)
	}
}

func TestHintComesAfterTheDebounce(t *testing.T) {
	bubble(t, Options{}, 0, func(t *testing.T, w *Watcher, f *fake) {
		f.write("specs/b.yaml")
		f.write("specs/a.yaml")
		f.write("specs/b.yaml")
		f.write("elsewhere.txt")
		f.events <- fsnotify.Event{Name: filepath.Join(f.root, "specs/c.yaml"), Op: fsnotify.Chmod}
		wantHint(t, w, 200*ms, Hint{Paths: []string{"specs/a.yaml", "specs/b.yaml"}})
	})
}

func TestBurstIsReportedWhileItGoesOn(t *testing.T) {
	bubble(t, Options{Debounce: 100 * ms}, 0, func(t *testing.T, w *Watcher, f *fake) {
		start := time.Now()
		stop := make(chan struct{})
		go func() {
			for every := time.NewTicker(60 * ms); ; {
				select {
				case <-every.C:
					f.write("specs/a.yaml")
				case <-stop:
					return
				}
			}
		}()
		for range 3 {
			<-w.Hints()
			if took := time.Since(start); took > 600*ms {
				t.Errorf("a burst was reported after %v, want at most 600ms", took)
			}
			start = time.Now()
		}
		close(stop)
	})
}

func TestSlowReceiverGetsOneHint(t *testing.T) {
	bubble(t, Options{}, 0, func(t *testing.T, w *Watcher, f *fake) {
		f.write("specs/a.yaml")
		time.Sleep(time.Second)
		f.write("specs/b.yaml")
		time.Sleep(time.Second)
		wantHint(t, w, 0, Hint{Paths: []string{"specs/a.yaml", "specs/b.yaml"}})
	})
}

func TestOverflowMeansEverything(t *testing.T) {
	bubble(t, Options{}, 0, func(t *testing.T, w *Watcher, f *fake) {
		f.write("specs/a.yaml")
		mkdir(t, f.root, "specs/lost") // its event is among the lost ones
		f.errs <- fsnotify.ErrEventOverflow
		wantHint(t, w, 200*ms, Hint{Full: true})
		if !slices.Contains(f.added, "specs/lost") {
			t.Errorf("after an overflow, specs/lost is not watched: %q", f.added)
		}
	})
}

func TestErrorsAreToldOnceAndMeanEverything(t *testing.T) {
	var told []error
	o := Options{Warn: func(err error) { told = append(told, err) }}
	bubble(t, o, 0, func(t *testing.T, w *Watcher, f *fake) {
		for range 3 {
			f.errs <- errors.New("short read")
		}
		wantHint(t, w, 200*ms, Hint{Full: true})
		if len(told) != 1 || !strings.Contains(told[0].Error(), "short read") {
			t.Errorf("told %v, want one warning", told)
		}
	})
}

func TestRescansAreRegular(t *testing.T) {
	bubble(t, Options{Rescan: 100 * time.Second}, 0, func(t *testing.T, w *Watcher, f *fake) {
		for range 5 {
			start := time.Now()
			h := <-w.Hints()
			if took := time.Since(start); !h.Full || took < 90*time.Second || took > 110*time.Second {
				t.Errorf("hint %+v after %v, want a full one after 100s give or take 10s", h, took)
			}
		}
	})
}

func TestSpread(t *testing.T) {
	different := map[time.Duration]bool{}
	for i := range 1000 {
		seed := fmt.Sprint(i)
		d := spread(time.Second, seed)
		different[d] = true
		if d < 900*ms || d > 1100*ms || d != spread(time.Second, seed) {
			t.Errorf("spread(1s, %q) = %v, then %v", seed, d, spread(time.Second, seed))
		}
	}
	if len(different) < 900 {
		t.Errorf("1000 seeds gave only %d times", len(different))
	}
	if d := spread(4, "x"); d != 4 {
		t.Errorf("spread(4ns) = %v", d)
	}
}

func TestExhaustionIsToldOnceAndReplacedByPolling(t *testing.T) {
	var told []error
	o := Options{Poll: 2 * time.Second, Rescan: time.Hour, Warn: func(err error) { told = append(told, err) }}
	bubble(t, o, 2, func(t *testing.T, w *Watcher, f *fake) {
		if len(told) != 1 || !strings.Contains(told[0].Error(), "fs.inotify.max_user_watches") || !f.closed {
			t.Fatalf("told %v, closed %v, want one warning that names the limit, and a closed notifier", told, f.closed)
		}
		put(t, f.root, "specs/dags/a.yaml", "one")
		wantHint(t, w, 2200*ms, Hint{Full: true}) // a poll, then the debounce
		put(t, f.root, "specs/dags/a.yaml", "other")
		wantHint(t, w, 2000*ms, Hint{Full: true})
		put(t, f.root, "unwatched", "one")
		if err := os.Remove(filepath.Join(f.root, "specs/dags/a.yaml")); err != nil {
			t.Fatal(err)
		}
		wantHint(t, w, 2000*ms, Hint{Full: true})
		put(t, f.root, "unwatched", "other")
		select {
		case h := <-w.Hints():
			t.Errorf("hint %+v for a file that is not watched", h)
		case <-time.After(time.Minute):
		}
		if len(told) != 1 {
			t.Errorf("told %v, want one warning", told)
		}
	})
}

func TestNoNotifierAtAllMeansPolling(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var told []error
		w, err := New(root, Options{Paths: []string{"specs"}, Warn: func(err error) { told = append(told, err) },
			open: func() (notifier, error) { return nil, syscall.EMFILE }})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		wantHint(t, w, 0, Hint{Full: true})
		mkdir(t, root, "specs")
		put(t, root, "specs/a.yaml", "one")
		wantHint(t, w, 2200*ms, Hint{Full: true})
		if len(told) != 1 || !strings.Contains(told[0].Error(), "max_user_instances") {
			t.Errorf("told %v, want one warning that names the limit", told)
		}
	})
}

func TestFollow(t *testing.T) {
	bubble(t, Options{Rescan: time.Hour}, 0, func(t *testing.T, w *Watcher, f *fake) {
		mkdir(t, f.root, "src/app")
		w.Follow([]string{"specs"})
		w.Follow([]string{"src"})
		wantHint(t, w, 0, Hint{Full: true})
		if want := []string{".", "src", "src/app"}; !slices.Equal(slices.Sorted(slices.Values(slices.Compact(f.added))), want) {
			t.Errorf("watched %q, want %q", f.added, want)
		}
		f.write("specs/a.yaml")
		f.write("src/app/main.go")
		wantHint(t, w, 200*ms, Hint{Paths: []string{"src/app/main.go"}})
		w.Follow([]string{"./src"}) // the same in other words
		f.write("src/app/main.go")
		wantHint(t, w, 200*ms, Hint{Paths: []string{"src/app/main.go"}})
	})
}

func TestCloseEndsTheHints(t *testing.T) {
	bubble(t, Options{}, 0, func(t *testing.T, w *Watcher, f *fake) {
		f.write("specs/a.yaml")
		for range 2 {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		if h, ok := <-w.Hints(); ok {
			t.Errorf("hint %+v after Close", h)
		}
		w.Follow([]string{"src"}) // returns
		if !f.closed {
			t.Error("the notifier is still open")
		}
	})
}

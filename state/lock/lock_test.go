package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func openRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// names lists the files below root that are not guards.
func names(t testing.TB, root *os.Root) string {
	t.Helper()
	var list []string
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(p, ".guard") {
			list = append(list, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// appendLine returns a mutate that adds a line unless it is there.
func appendLine(line string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		if strings.Contains(string(old), line+"\n") {
			return old, nil
		}
		return append(old, line+"\n"...), nil
	}
}

func TestAcquireRelease(t *testing.T) {
	root := openRoot(t)
	ctx := t.Context()
	l, err := Acquire(ctx, root, "state/sub/f.json", Options{Agent: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, root); got != "state/sub/f.json.lock" {
		t.Errorf("files while locked: %s", got)
	}
	data, err := root.ReadFile("state/sub/f.json.lock")
	b := parseBody(data)
	if err != nil || b.PID != os.Getpid() || b.Agent != "tester" || time.Since(b.Timestamp) > time.Minute {
		t.Errorf("lock file %s: %+v, %v", data, b, err)
	}
	if info, err := Inspect(root, "state/sub/f.json", Options{}); err != nil || info.State != Live || info.PID != os.Getpid() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, root); got != "" {
		t.Errorf("left over: %s", got)
	}
	if info, err := Inspect(root, "state/sub/f.json", Options{}); err != nil || info.State != Free {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
}

func TestBusyInside(t *testing.T) {
	root := openRoot(t)
	l, err := Acquire(t.Context(), root, "f", Options{Agent: "first"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(t.Context(), root, "f", Options{Backoff: time.Millisecond})
	var busy *BusyError
	if !errors.Is(err, ErrBusy) || !errors.As(err, &busy) || busy.PID != os.Getpid() || busy.Agent != "first" || !busy.Hung {
		t.Errorf("err = %v, %+v", err, busy)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Acquire(ctx, root, "f", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if l, err = Acquire(t.Context(), root, "f", Options{}); err != nil {
		t.Fatalf("after those who gave up: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestGoroutinesExcludeEachOther(t *testing.T) {
	root := openRoot(t)
	var wg sync.WaitGroup
	const workers, updates = 16, 25
	for w := range workers {
		wg.Go(func() {
			for i := range updates {
				line := fmt.Sprintf("w%d-%d", w, i)
				if err := Update(t.Context(), root, "f", Options{Backoff: 10 * time.Second, Longest: time.Minute}, appendLine(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := root.ReadFile("f")
	if err != nil || strings.Count(string(data), "\n") != workers*updates {
		t.Errorf("%d lines of %d, %v", strings.Count(string(data), "\n"), workers*updates, err)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	root := openRoot(b)
	for b.Loop() {
		l, err := Acquire(b.Context(), root, ".reconcile/tree", Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

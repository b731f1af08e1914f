package embedhttp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/vectors/embed"
)

const folder = ".reconcile/cache/embeddings"

func cacheIn(t *testing.T, dir string, limit int64) *Cache {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return NewCache(root, folder, limit)
}

func TestNothingIsAskedTwice(t *testing.T) {
	t.Parallel()
	server, dir := serve(t, nil), t.TempDir()
	texts := []string{"a", "b", "c", "a", ""}
	for range 3 { // processes
		e, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20); o.Batch = 2 })
		for range 2 {
			got, err := e.Embed(t.Context(), texts)
			if err != nil || e.Cache.Err() != nil {
				t.Fatal(err, e.Cache.Err())
			}
			check(t, texts, got)
		}
	}
	if n := server.count(); n != 2 {
		t.Errorf("%d requests, want 2 for three texts", n)
	}
	e, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20); o.Model = "other" })
	if _, err := e.Embed(t.Context(), []string{"a"}); err != nil || server.count() != 3 {
		t.Errorf("another model needs another vector: %v, %d requests", err, server.count())
	}
}

// TestCachesSeeEachOther: two processes at once, each finds what the other had made.
func TestCachesSeeEachOther(t *testing.T) {
	t.Parallel()
	server, dir := serve(t, nil), t.TempDir()
	var group sync.WaitGroup
	for p := range 4 {
		e, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20); o.Batch = 5 })
		group.Go(func() {
			for i := range 20 {
				if _, err := e.Embed(t.Context(), []string{fmt.Sprint(p, i), fmt.Sprint(i)}); err != nil || e.Cache.Err() != nil {
					t.Error(err, e.Cache.Err())
				}
			}
		})
	}
	group.Wait()
	var texts []string
	for i := range 20 {
		texts = append(texts, fmt.Sprint(i))
		for p := range 4 {
			texts = append(texts, fmt.Sprint(p, i))
		}
	}
	before := server.count()
	e, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20) })
	got, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	check(t, texts, got)
	if n := server.count() - before; n != 0 {
		t.Errorf("%d requests for what others had", n)
	}
}

// TestWhatWasMadeBeforeAFailureIsKept: a rebuild that ended half way goes on there.
func TestWhatWasMadeBeforeAFailureIsKept(t *testing.T) {
	t.Parallel()
	broken := true
	server := serve(t, nil)
	server.fault = faultFrom(&broken, 2)
	e, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, t.TempDir(), 1<<20); o.Batch = 1; o.Parallel = 1 })
	texts := []string{"a", "b", "c", "d"}
	if _, err := e.Embed(t.Context(), texts); err == nil {
		t.Fatal("no error")
	}
	broken = false
	before := server.count()
	got, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	check(t, texts, got)
	if n := server.count() - before; n != 2 {
		t.Errorf("%d requests for the two that were missing", n)
	}
}

// TestDamagedCache: whatever is in the files, the vectors are right.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "b", "c"}
	for name, damage := range map[string]func(dir string) error{
		"vector":      func(dir string) error { return flip(filepath.Join(dir, "1.vectors"), 5) },
		"key":         func(dir string) error { return flip(filepath.Join(dir, "1.keys"), 3) },
		"place":       func(dir string) error { return flip(filepath.Join(dir, "1.keys"), 16+7) },
		"dimensions":  func(dir string) error { return flip(filepath.Join(dir, "1.keys"), 24) },
		"torn keys":   func(dir string) error { return os.Truncate(filepath.Join(dir, "1.keys"), 2*rowSize+7) },
		"torn vector": func(dir string) error { return os.Truncate(filepath.Join(dir, "1.vectors"), 2*4*dims+3) },
		"no vectors":  func(dir string) error { return os.Remove(filepath.Join(dir, "1.vectors")) },
		"gone":        os.RemoveAll,
		"odd names": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "007.keys"), []byte(strings.Repeat("x", 90)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := serve(t, nil), t.TempDir()
			running, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20) })
			if _, err := running.Embed(t.Context(), texts); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, folder)); err != nil {
				t.Fatal(err)
			}
			fresh, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20) })
			for _, e := range []*Embedder{running, fresh} {
				got, err := e.Embed(t.Context(), texts)
				if err != nil || e.Cache.Err() != nil {
					t.Fatal(err, e.Cache.Err())
				}
				check(t, texts, got)
			}
			before := server.count()
			last, _ := server.embedder(t, func(o *Options) { o.Cache = cacheIn(t, dir, 1<<20) })
			if _, err := last.Embed(t.Context(), texts); err != nil || server.count() != before {
				t.Errorf("%d more requests, and %v: what was lost was not kept again", server.count()-before, err)
			}
		})
	}
}

// flip changes a byte of a file.
func flip(name string, at int) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[at] ^= 0x55
	return os.WriteFile(name, data, 0o600)
}

func TestCacheKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 64 * (rowSize + 4*dims)
	dir := t.TempDir()
	c := cacheIn(t, dir, limit)
	v := embed.Nothing(dims)
	for i := range 500 {
		c.add([]key{keyOf("m", fmt.Sprint(i))}, [][]float32{v})
		if size := sizeOf(t, filepath.Join(dir, folder)); size > limit {
			t.Fatalf("%d bytes after %d vectors, want %d at most", size, i+1, limit)
		}
	}
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	fresh := cacheIn(t, dir, limit)
	fresh.refresh()
	var keys []key
	for i := range 500 {
		keys = append(keys, keyOf("m", fmt.Sprint(i)))
	}
	found, all := 0, fresh.get(keys, dims)
	for _, v := range all {
		if v != nil {
			found++
		}
	}
	if all[499] == nil || found < 48 || found > 64 {
		t.Errorf("%d of the newest vectors are there, want 48 to 64", found)
	}
}

func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// TestCacheStaysInTheTree: a tree of others cannot have files outside of it written, and vectors are still had.
func TestCacheStaysInTheTree(t *testing.T) {
	t.Parallel()
	server, dir, outside := serve(t, nil), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".reconcile"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, ".reconcile", "cache")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	var warned []error
	e, _ := server.embedder(t, func(o *Options) {
		o.Cache, o.Batch, o.Parallel = cacheIn(t, dir, 1<<20), 1, 1
		o.Warn = func(err error) { warned = append(warned, err) }
	})
	got, err := e.Embed(t.Context(), []string{"a", "b"})
	if err != nil || len(warned) != 1 || !errors.Is(warned[0], e.Cache.Err()) {
		t.Fatalf("%v; warned of %v; the cache says %v", err, warned, e.Cache.Err())
	}
	check(t, []string{"a", "b"}, got)
	if n := sizeOf(t, outside); n != 0 {
		t.Errorf("%d bytes were written outside the tree", n)
	}
}

// faultFrom fails from the nth request on, while *broken.
func faultFrom(broken *bool, n int) func(int, request, http.ResponseWriter) bool {
	return func(i int, _ request, w http.ResponseWriter) bool {
		if *broken && i >= n {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return *broken && i >= n
	}
}

package state

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever file the cache is wrong about, the comparison names it, and only that one.
func TestCompareCache(t *testing.T) {
	dir, _ := cachedTree(t)
	s := open(t, dir)
	load(t, s)
	if differ, err := s.CompareCache(t.Context()); err != nil || len(differ) > 0 {
		t.Fatalf("of a sound cache: %q, %v", differ, err)
	}
	name := filepath.Join(dir, filepath.FromSlash(cachePath))
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[area]int{}
	for p, f := range s.model.files {
		if f.at == 0 {
			continue
		}
		wrong := slices.Clone(sound)
		wrong[f.at+recordHeader+int64(len(p))+1] ^= 1 // behind the path: the area
		if err := os.WriteFile(name, wrong, 0o644); err != nil {
			t.Fatal(err)
		}
		if differ, err := s.CompareCache(t.Context()); err != nil || !slices.Equal(differ, []string{p}) {
			t.Errorf("with a wrong record of %s: %q, %v", p, differ, err)
		}
		kinds[f.area]++
	}
	for _, a := range []area{areaSpecs, areaStatus, areaRuns, areaLedgers} {
		if kinds[a] == 0 {
			t.Errorf("no file of area %d is in the cache", a)
		}
	}
	if err := os.WriteFile(name, sound, 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"specs/checks.yaml": dagYAML + "# edited\n"})
	os.Remove(filepath.Join(dir, "specs/labelled.yaml"))
	if differ, err := s.CompareCache(t.Context()); err != nil || len(differ) > 0 {
		t.Errorf("of files that changed since: %q, %v", differ, err)
	}
	for p, f := range s.model.inputs.files {
		wrong := *f
		wrong.digest[0] ^= 1
		s.model.inputs.files[p] = &wrong
		if differ, err := s.CompareCache(t.Context()); err != nil || !slices.Equal(differ, []string{p}) {
			t.Errorf("with a wrong digest of the input %s: %q, %v", p, differ, err)
		}
		s.model.inputs.files[p] = f
	}
}

// A first load that is killed keeps what it has read.
func TestKilledFirstLoadKeepsWhatItRead(t *testing.T) {
	dir := t.TempDir()
	generate(t, dir, 600)
	put(t, dir, map[string]string{"specs/checks.yaml": dagYAML})
	ctx, kill := context.WithCancel(t.Context())
	s := open(t, dir)
	now, reads := s.opts.FileNow, new(atomic.Int64)
	s.opts.FileNow = func() time.Time {
		if reads.Add(1) == 500 {
			kill()
		}
		return now()
	}
	if _, err := s.Load(ctx); err == nil {
		t.Fatal("the load was not killed")
	}
	next := open(t, dir)
	load(t, next)
	whole := open(t, dir)
	whole.opts.NoCache = true
	load(t, whole)
	if n, all := next.decoded.Load(), whole.decoded.Load(); n >= all {
		t.Errorf("the next load decoded %d files, as many as one without a cache", all)
	}
}

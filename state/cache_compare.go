package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

// CompareCache reads every file of the loaded tree again, and every input of a node, and returns the sorted paths of those whose content is
// not what the cache has of them. Files that changed since the tree was loaded are left out. The cache has the same bytes for the same
// content, so that nothing has to be kept to compare.
func (s *Store) CompareCache(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _, err := regular.Open(s.root, cachePath)
	if err != nil || s.model == nil {
		return nil, nil // there is nothing to compare
	}
	defer f.Close()
	plain, err := Open(s.dir, s.withoutCache())
	if err != nil {
		return nil, fmt.Errorf("compare the cache: %w", err)
	}
	defer plain.Close()
	plain.useSettings(s.model.settings.spec)
	c := cacheComparison{store: plain, files: s.model.files}
	for _, f := range s.model.files {
		if f.at > 0 && !f.racy && f.area != areaOther {
			c.want = append(c.want, scanEntry{f.path, f.area, f.stat})
		}
	}
	slices.SortFunc(c.want, func(a, b scanEntry) int { return cmp.Or(cmp.Compare(a.area, b.area), cmp.Compare(a.path, b.path)) })
	s.large(2*len(c.want), largeTree) // decoding every file makes as much garbage as a second tree
	c.compare(ctx, func() *cacheReader { return &cacheReader{File: f, ahead: readOne} })
	c.compareInputs(s.model.inputs.files)
	if c.err == nil {
		c.err = ctx.Err()
	}
	slices.Sort(c.differ)
	return c.differ, c.err
}

func (s *Store) withoutCache() Options {
	o := s.opts
	o.NoCache = true
	return o
}

// cacheComparison compares the cache with files.
type cacheComparison struct {
	store *Store // without a cache
	files map[string]*file
	want  []scanEntry // the files to read, by folder

	mu     sync.Mutex
	differ []string
	err    error // the first
}

func (c *cacheComparison) found(path string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.differ = append(c.differ, path)
	}
	if c.err == nil {
		c.err = err
	}
}

// compare reads the files in parallel.
func (c *cacheComparison) compare(ctx context.Context, records func() *cacheReader) {
	parts := partition(c.want)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers(), len(parts)) {
		wg.Go(func() {
			r, cached := reader{store: c.store, root: c.store.root}, records()
			defer r.close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				c.part(&r, cached, c.want[parts[i].from:parts[i].to])
			}
		})
	}
	wg.Wait()
}

// part compares files of one folder.
func (c *cacheComparison) part(r *reader, cached *cacheReader, want []scanEntry) {
	is := c.store.cache.encoder(blockSpecs) // the kind is that of the block, of which only the records are used
	defer c.store.cache.spare.Put(is)
	for _, w := range want {
		start := len(is.B)
		f, err := c.read(r, w, is)
		switch {
		case err != nil:
			c.found(w.path, fmt.Errorf("read %s: %w", w.path, regular.Cause(err)))
		case f != nil && f.stat == w.stat && !f.racy && !bytes.Equal(is.B[start:], cached.bytes(c.files[w.path].at, len(is.B)-start)):
			c.found(w.path, nil)
		}
		is.B, is.files, is.starts = is.B[:start], is.files[:0], is.starts[:0]
	}
}

// read reads a file; nil if it is gone.
func (c *cacheComparison) read(r *reader, w scanEntry, to *encoder) (*file, error) {
	err := r.goTo(w.home())
	var f *file
	if err == nil {
		f, err = r.file(w, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// compareInputs compares the digests of inputs.
func (c *cacheComparison) compareInputs(files map[string]*inputFile) {
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f, fi, err := regular.Open(c.store.root, p)
		if err != nil {
			continue // it is gone, or becomes an input that cannot be read with the next load
		}
		digest, err := c.store.digestOf(p, f)
		f.Close()
		if is := files[p]; err == nil && !is.racy && disk.StatOf(fi) == is.stat && digest != is.digest {
			c.found(p, nil)
		}
	}
}

package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reconcile.dev/reconcile/state/disk"
	"slices"
)

// MemoryDir returns the directory of the memory in the layout of the store, below the root.
func (s *Store) MemoryDir() string { return s.layout().memoryDir() }

func (l *layout) memoryDir() string { return l.state + "/" + memoryFolder }

// HasMemory reports whether MemoryDir is an existing folder, even if it is empty.
func (s *Store) HasMemory() bool {
	fi, err := s.root.Lstat(s.MemoryDir())
	return err == nil && fi.IsDir()
}

// SweepMemory sweeps the memory's folder of the leftover locks of killed processes; see SweepLedgers.
func (s *Store) SweepMemory(ctx context.Context) error { return s.sweepLocks(ctx, s.MemoryDir()) }

// RefreshMemory updates the store's knowledge of the files in the memory's folder, its archive and its records, so that the
// next Refresh does not report as changes what this process wrote there by other means than Write and Fold.
func (s *Store) RefreshMemory() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil
	}
	there := map[string]bool{}
	dir := s.layout().memoryDir()
	for _, folder := range []string{dir, dir + "/" + archiveFolder, dir + "/" + recordsFolder} {
		if err := s.scanMemory(folder, there); err != nil {
			return fmt.Errorf("look at the memory in %s: %w", folder, err)
		}
	}
	for _, p := range slices.Collect(maps.Keys(s.model.files)) {
		if within(dir, p) && !there[p] {
			s.model.drop(p)
		}
	}
	return nil
}

// scanMemory updates the model's files in one folder of the memory.
func (s *Store) scanMemory(dir string, there map[string]bool) error {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer d.Close()
	var l disk.Listing
	for more := true; more; {
		l.Reset()
		if more, err = d.List(&l); err != nil {
			return err
		}
		for i := range l.Len() {
			name := l.Name(i)
			var st disk.Stat
			if hidden(name) || !jsonFile(name) || d.Stat(name, &st) != nil || st.Form() != disk.File {
				continue
			}
			p := path.Join(dir, string(name))
			there[p] = true
			if old := s.model.files[p]; old == nil || old.stat != st {
				s.model.put(&file{path: p, area: areaOther, stat: st})
			}
		}
	}
	return nil
}

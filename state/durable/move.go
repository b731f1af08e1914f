package durable

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// Mover moves files, and makes all moves durable together: one by one, each would wait twice for the disk. A reader sees a file
// at one of its two paths, also after a power loss.
type Mover struct {
	w    *durableWriter
	left map[string]bool // folders that lost a file
}

// NewMover returns a mover below root. Sync must be called at the end.
func NewMover(root *os.Root) *Mover {
	return &Mover{newWriter(root, "."), map[string]bool{}}
}

// Move moves a regular file from one path below root to another, unused one, and makes missing folders. The error wraps
// fs.ErrExist if the target exists, fs.ErrNotExist if the file does not, and ErrRefused for paths that this package does
// not change.
func (m *Mover) Move(from, to string) error {
	mode, err := m.w.vet(from)
	switch {
	case err != nil:
		return fail("move", from, err)
	case mode == 0:
		return fail("move", from, fs.ErrNotExist)
	}
	if mode, err = m.w.vet(to); err != nil || mode != 0 {
		if err == nil {
			err = fs.ErrExist
		}
		return fail("move", to, err)
	}
	if err := m.w.makeDir(path.Dir(to), true); err != nil {
		return fail("move", to, err)
	}
	if err := m.w.root.Rename(from, to); err != nil {
		return fail("move", from, fmt.Errorf("to %s: %w", to, err))
	}
	m.w.touch(path.Dir(to))
	m.left[path.Dir(from)] = true
	return nil
}

// Sync makes the moves durable, and ends the mover. The new names come before the end of the old ones.
func (m *Mover) Sync() error {
	defer m.w.folders.close()
	m.w.dirty = append(m.w.dirty, slices.Sorted(maps.Keys(m.left))...)
	return m.w.syncDirs()
}

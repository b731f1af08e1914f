package state

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Scratch is a new file without a name, for what is too large to be held in memory; see [durable.Scratch]. Of a tree that
// may only be read it lies in the system's folder for such files.
func (s *Store) Scratch() (*os.File, error) {
	err := s.ensureLocal(tmpDir)
	if err == nil {
		var f *os.File
		if f, err = durable.Scratch(s.root, tmpDir); err == nil {
			return f, nil
		}
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	root, elsewhere := regular.Root(os.TempDir())
	if elsewhere != nil {
		return nil, err
	}
	defer root.Close()
	f, elsewhere := durable.Scratch(root, ".")
	if elsewhere != nil {
		return nil, err
	}
	return f, nil
}

// SweepTemp removes the temporary files of processes that were killed.
func (s *Store) SweepTemp() error { return durable.Sweep(s.root, tmpDir) }

// MapScratch returns what a scratch file has, read as it is used, until release is called. forget gives back the memory
// that what was read has taken; it is read again where it is used again.
func MapScratch(f *os.File) (data []byte, forget, release func(), err error) {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return nil, func() {}, func() {}, err
	}
	data, release, err = mapFile(f, int(fi.Size()))
	return data, func() { forgetPages(data) }, release, err
}

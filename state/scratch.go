package state

import (
	"os"

	"reconcile.dev/reconcile/state/durable"
)

// Scratch is a new file without a name, for what is too large to be held in memory; see [durable.Scratch].
func (s *Store) Scratch() (*os.File, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return durable.Scratch(s.root, tmpDir)
}

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

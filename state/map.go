package state

import (
	"errors"

	"reconcile.dev/reconcile/state/regular"
)

// Map returns the content of a derived file of the tree, read as it is used, until release is called. Such files are
// replaced and never cut, so that what is mapped stays. A file that does not exist is an error of package fs, and so is
// one that is not a regular file; an empty one has no content and no error.
func (s *Store) Map(p string) (data []byte, release func(), err error) {
	f, fi, err := regular.Open(s.root, p)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi.Size() == 0 {
		return nil, func() {}, nil
	}
	return mapFile(f, int(fi.Size()))
}

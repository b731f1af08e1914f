package state

import (
	"errors"
	"fmt"
	"os"
)

// Map returns the content of a derived file of the tree, read as it is used, until release is called. Such files are
// replaced and never cut, so that what is mapped stays. A file that does not exist is an error of package fs, and so is
// one that is not a regular file; an empty one has no content and no error.
func (s *Store) Map(p string) (data []byte, release func(), err error) {
	f, err := s.root.OpenFile(p, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file: %w", p, os.ErrInvalid)
	}
	if fi.Size() == 0 {
		return nil, func() {}, nil
	}
	return mapFile(f, int(fi.Size()))
}

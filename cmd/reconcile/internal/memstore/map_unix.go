//go:build unix

package memstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the content of a file as pages that are read when they are used. Files of the cache are replaced and
// never cut, so that what is mapped stays.
func mapFile(f *os.File, size int) ([]byte, func(), error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}

//go:build unix

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Map returns the content of an open file as pages that are read on first use.
func Map(f *os.File, size int) ([]byte, func(), error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}

// ForgetPages removes the pages of a mapped file from the memory of this process.
func ForgetPages(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) }

//go:build unix

package disk

import (
	"os"
	"syscall"

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

// Foreign reports whether the folder at belongs to a user who owns neither dir nor this process, and is not root.
func Foreign(at, dir string) bool {
	owner, ok := ownerOf(at)
	if !ok || owner == 0 || int(owner) == os.Geteuid() {
		return false
	}
	same, ok := ownerOf(dir)
	return !ok || same != owner
}

func ownerOf(dir string) (uid uint32, ok bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return sys.Uid, true
}

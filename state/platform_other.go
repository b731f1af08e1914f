//go:build !unix

package state

import (
	"io"
	"os"
)

// mapFile reads the content into memory, since mapping is not available here.
func mapFile(f *os.File, size int) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, func() {}, err
}

// forgetPages does nothing here: the content is only in memory.
func forgetPages([]byte) {}

// foreign reports whether the folder at belongs to another user; this system does not say.
func foreign(at, dir string) bool { return false }

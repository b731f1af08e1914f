//go:build !unix

package disk

import (
	"io"
	"os"
)

// Map reads the content into memory, since mapping is not available here.
func Map(f *os.File, size int) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, func() {}, err
}

// ForgetPages does nothing here: the content is only in memory.
func ForgetPages([]byte) {}

//go:build !unix

package state

import (
	"io"
	"os"
)

// mapFile reads the content: what cannot be mapped takes its size in memory.
func mapFile(f *os.File, size int) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, func() {}, err
}

// forgetPages does nothing: there is no other place to read it from.
func forgetPages([]byte) {}

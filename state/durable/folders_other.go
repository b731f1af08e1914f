//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

// folders resolves the path below the root each time.
type folders struct{ root *os.Root }

func (f *folders) create(name string, mode fs.FileMode) (*os.File, error) {
	return f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

func (f *folders) rename(from, to string) error { return f.root.Rename(from, to) }
func (f *folders) forget(string)                {}
func (f *folders) close()                       {}

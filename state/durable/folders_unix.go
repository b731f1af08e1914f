//go:build unix

package durable

import (
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

// folders keeps folders open during one call of this package. A path is resolved below the root once, when its folder is
// opened; later operations in it cannot be redirected.
type folders struct {
	root *os.Root
	open map[string]*os.File
}

func (f *folders) at(dir string) (int, error) {
	if d := f.open[dir]; d != nil {
		return int(d.Fd()), nil
	}
	d, err := regular.Folder(f.root, dir)
	if err != nil {
		return -1, err
	}
	if f.open == nil {
		f.open = map[string]*os.File{}
	}
	f.open[dir] = d
	return int(d.Fd()), nil
}

// create creates a file that is to be written durably, and that must not exist.
func (f *folders) create(name string, mode fs.FileMode) (*os.File, error) {
	dir, err := f.at(path.Dir(name))
	if err != nil {
		return nil, err
	}
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, path.Base(name), flags, uint32(mode.Perm()))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// rename renames a file over another.
func (f *folders) rename(from, to string) error {
	a, err := f.at(path.Dir(from))
	if err != nil {
		return err
	}
	b, err := f.at(path.Dir(to))
	if err != nil {
		return err
	}
	if err := unix.Renameat(a, path.Base(from), b, path.Base(to)); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// forget closes a folder that was removed.
func (f *folders) forget(dir string) {
	if d := f.open[dir]; d != nil {
		d.Close()
		delete(f.open, dir)
	}
}

func (f *folders) close() {
	for _, d := range f.open {
		d.Close()
	}
	f.open = nil
}

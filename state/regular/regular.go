// Package regular opens regular files and folders by untrusted names: in a tree, anybody who can commit, or run a command
// there, decides the type of a file. It rejects other types, even if one replaced a file a moment ago, and no open waits
// for the other end of a pipe.
package regular

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
)

// ErrNot says that a path is not a regular file: a folder, a pipe, a socket, a device.
var ErrNot = errors.New("it is not a regular file; remove it or put a file in its place")

// Open opens the regular file name of root for reading, and returns it with its FileInfo. The error wraps ErrNot if it is
// not a regular file.
func Open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return OpenFile(root, name, os.O_RDONLY, 0)
}

// OpenFile is root.OpenFile for regular files, for reading or writing. The error wraps ErrNot for others.
func OpenFile(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, flag|nonBlocking, perm)
	return vet(f, err, name)
}

// OpenPath opens the regular file at name, a path of the system without a root, with the given flag and perm. It is like
// OpenFile.
func OpenPath(name string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, flag|nonBlocking, perm)
	return vet(f, err, name)
}

// vet returns an open file with its stat, and closes it if it is not a regular file.
func vet(f *os.File, err error, name string) (*os.File, fs.FileInfo, error) {
	if err != nil {
		if noFile(err) {
			err = &fs.PathError{Op: "open", Path: name, Err: ErrNot}
		}
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNot}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, fi, nil
}

// Read returns the content of a regular file of root.
func Read(root *os.Root, name string) ([]byte, error) {
	f, fi, err := Open(root, name)
	return content(f, fi, err, math.MaxInt64-1)
}

// ReadPath reads the content of the regular file at name, a path of the system without a root.
func ReadPath(name string) ([]byte, error) { return ReadPathUpTo(name, math.MaxInt64-1) }

// ErrTooLarge says that a file has more bytes than its reader takes.
var ErrTooLarge = errors.New("it is too large")

// ReadPathUpTo is ReadPath for files of at most limit bytes. The error of a larger one wraps ErrTooLarge.
func ReadPathUpTo(name string, limit int64) ([]byte, error) {
	f, fi, err := OpenPath(name, os.O_RDONLY, 0)
	return content(f, fi, err, limit)
}

func content(f *os.File, fi fs.FileInfo, err error, limit int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 0, max(min(fi.Size(), limit, 1<<30)+1, 512)) // files of /proc have no size, and some must be read at once
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// Write writes data to the regular file name of root, which it creates with perm or truncates, like root.WriteFile.
func Write(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	f, _, err := OpenFile(root, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Folder opens only a folder, with the given name in root.
func Folder(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|folderOnly, 0)
}

// FolderPath opens the folder at the path dir of the system, outside of any root, and nothing but a folder.
func FolderPath(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|folderOnly, 0)
}

// Root is os.OpenRoot.
func Root(dir string) (*os.Root, error) {
	if dir == "" || strings.HasSuffix(dir, string(os.PathSeparator)) {
		return os.OpenRoot(dir) // ends in a separator: the system opens folders only
	}
	// With a separator at the end, the system opens only folders.
	return os.OpenRoot(dir + string(os.PathSeparator))
}

// FS is root.FS for regular files.
func FS(root *os.Root) fs.FS { return files{root} }

// files is the fs.FS of a root.
type files struct{ root *os.Root }

func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	d, err := Folder(f.root, name)
	if err == nil {
		return d, nil
	}
	file, _, err := Open(f.root, name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f files) Stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }

// ReadDir lists a folder, sorted by name.
func (f files) ReadDir(name string) ([]fs.DirEntry, error) { return List(f.root, name) }

// Cause returns the error inside of a fs.PathError, without its operation and path, for a message that names the path
// already. Any other error is returned unchanged.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// List returns the entries of a folder of root, sorted by name.
func List(root *os.Root, dir string) ([]fs.DirEntry, error) {
	d, err := Folder(root, dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

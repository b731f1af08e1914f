package state

import (
	"errors"
	"io/fs"
	"os"
)

// stat is the metadata of a file that the file system returns: enough to recognize, without reading it, that the file did
// not change.
type stat struct {
	Size  int64
	Mtime int64 // ns since 1970
	Ctime int64 // ns since 1970; Mtime on systems without a change time
	Ino   uint64
	Mode  uint32 // permission bits and, above them, the form
}

// form is the type of an entry in a folder.
type form uint8

const (
	formUnknown form = iota
	formFile
	formFolder
	formLink
	formSpecial // FIFO, socket, device
)

// formShift is the position of the form in stat.Mode.
const formShift = 16

// lstat returns the stat of a slash path below root without following a link at its end.
func lstat(root *os.Root, p string) (stat, error) {
	fi, err := root.Lstat(p)
	if err != nil {
		return stat{}, err
	}
	return statOf(fi), nil
}

func statOf(fi os.FileInfo) stat {
	t := fi.ModTime().UnixNano()
	s := stat{Size: fi.Size(), Mtime: t, Ctime: t}
	s.Mode = uint32(fi.Mode().Perm()) | uint32(formOfMode(fi.Mode()))<<formShift
	s.refine(fi)
	return s
}

func formOfMode(m fs.FileMode) form {
	switch {
	case m.IsRegular():
		return formFile
	case m.IsDir():
		return formFolder
	case m&fs.ModeSymlink != 0:
		return formLink
	}
	return formSpecial
}

func (s *stat) form() form { return form(s.Mode >> formShift) }

// changed returns the last time at which the content or metadata changed.
func (s *stat) changed() int64 { return s.Ctime }

var (
	// errNotFile is the error of reading an irregular file.
	errNotFile = errors.New("not a regular file")
	// errTooLarge is the error of reading a file that is larger than the limit.
	errTooLarge = errors.New("too large")
)

// listing is a part of a folder's names, in the order of the file system.
type listing struct {
	names []byte // each followed by a NUL
	ends  []int32
	forms []form
	raw   []byte // the buffer of folder.list
}

func (l *listing) reset() { l.names, l.ends, l.forms = l.names[:0], l.ends[:0], l.forms[:0] }

func (l *listing) add(name []byte, f form) {
	l.names = append(l.names, name...)
	l.names = append(l.names, 0)
	l.ends = append(l.ends, int32(len(l.names)))
	l.forms = append(l.forms, f)
}

// name returns the i-th name. A NUL follows it, in the same array.
func (l *listing) name(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.names[start : l.ends[i]-1]
}

func (l *listing) len() int { return len(l.ends) }

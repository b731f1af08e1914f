package disk

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Stat is the metadata of a file that the file system returns: enough to recognize, without reading it, that the file did
// not change.
type Stat struct {
	Size  int64
	Mtime int64 // ns since 1970
	Ctime int64 // ns since 1970; Mtime on systems without a change time
	Ino   uint64
	Mode  uint32 // permission bits and, above them, the form
}

// Form is the type of an entry in a folder.
type Form uint8

const (
	Unknown Form = iota
	File
	Folder
	Link
	Special // FIFO, socket, device
)

// formShift is the position of the form in Stat.Mode.
const formShift = 16

// Lstat returns the stat of a slash path below root without following a link at its end.
func Lstat(root *os.Root, p string) (Stat, error) {
	fi, err := root.Lstat(p)
	if err != nil {
		return Stat{}, err
	}
	return StatOf(fi), nil
}

// StatOf returns the stat in a FileInfo.
func StatOf(fi os.FileInfo) Stat {
	t := fi.ModTime().UnixNano()
	s := Stat{Size: fi.Size(), Mtime: t, Ctime: t}
	s.Mode = uint32(fi.Mode().Perm()) | uint32(formOfMode(fi.Mode()))<<formShift
	s.refine(fi)
	return s
}

// StatOfForm returns a stat of which only the form is known.
func StatOfForm(f Form) Stat { return Stat{Mode: uint32(f) << formShift} }

func formOfMode(m fs.FileMode) Form {
	switch {
	case m.IsRegular():
		return File
	case m.IsDir():
		return Folder
	case m&fs.ModeSymlink != 0:
		return Link
	}
	return Special
}

// Form returns the form of the entry.
func (s *Stat) Form() Form { return Form(s.Mode >> formShift) }

// IsFile reports whether it is a regular file.
func (s Stat) IsFile() bool { return s.Form() == File }

// IsFolder reports whether it is a folder.
func (s Stat) IsFolder() bool { return s.Form() == Folder }

// Changed returns the last time at which the content or metadata changed.
func (s *Stat) Changed() int64 { return s.Ctime }

var (
	// ErrNotFile is the error of reading an irregular file.
	ErrNotFile = errors.New("not a regular file")
	// ErrTooLarge is the error of reading a file that is larger than the limit.
	ErrTooLarge = errors.New("too large")
)

// maxTick is the coarsest resolution of a file system's clock that is allowed for. [TickOf] has that of one file system.
const maxTick = 20 * time.Millisecond

// RacyAt reports whether a stat that was read at now may miss a later change: a file that was changed less than a tick before may
// be changed again with the same stat.
func (s *Stat) RacyAt(now time.Time, tick time.Duration) bool {
	return s.Changed() >= now.Add(-tick).UnixNano()
}

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"reconcile.dev/reconcile/state/regular"
)

// Dir is an open directory. All access goes through its descriptor and does not follow links, so that no path leads
// out of the tree or is resolved more than once.
type Dir struct {
	fd      int
	content []byte // the buffer of read
}

const openFolderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// OpenDir opens the folder at a slash path below root; "." is the root itself.
func OpenDir(root *os.Root, p string) (*Dir, error) {
	f, err := regular.Folder(root, ".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return (&Dir{fd: int(f.Fd())}).Below(p)
}

// Below opens the folder at a slash path below d; "." opens d again.
func (d *Dir) Below(p string) (*Dir, error) {
	if fd, ok := openBeneath(d.fd, p, openFolderFlags); ok {
		return &Dir{fd: fd}, nil
	}
	fd, err := openat(d.fd, ".", openFolderFlags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	cur := &Dir{fd: fd}
	if p == "." {
		return cur, nil
	}
	for part := range strings.SplitSeq(p, "/") {
		next, err := cur.Sub(part)
		cur.Close()
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: p, Err: err}
		}
		cur = next
	}
	return cur, nil
}

// openBeneath opens a path below a folder with one system call (openat2) that follows no links. ok is false if the call
// is not available: in kernels before 5.6 and in some sandboxes.
func openBeneath(dir int, p string, flags uint64) (fd int, ok bool) {
	if !fs.ValidPath(p) {
		return 0, false
	}
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(dir, p, &how)
	return fd, err == nil
}

// Sub opens a folder in d.
func (d *Dir) Sub(name string) (*Dir, error) {
	if name == "" || name == ".." || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not the name of a folder", name)
	}
	fd, err := openat(d.fd, name, openFolderFlags)
	if err != nil {
		return nil, err
	}
	return &Dir{fd: fd}, nil
}

// Close closes the folder.
func (d *Dir) Close() { _ = unix.Close(d.fd) }

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// List adds the next names of the folder to l, hundreds or thousands at a time; more is false at the end.
func (d *Dir) List(l *Listing) (more bool, err error) {
	if l.raw == nil {
		l.raw = make([]byte, 64<<10)
	}
	n, err := unix.Getdents(d.fd, l.raw)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Getdents(d.fd, l.raw)
	}
	if err != nil || n <= 0 {
		return false, err
	}
	const header = 19 // inode 8, offset 8, record length 2, type 1
	for b := l.raw[:n]; len(b) > header; {
		size := int(*(*uint16)(unsafe.Pointer(&b[16])))
		if size <= header || size > len(b) {
			return false, fmt.Errorf("the system listed a folder in a form that is not known")
		}
		name := b[header:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		if string(name) != "." && string(name) != ".." {
			l.add(name, formOf(b[18]))
		}
		b = b[size:]
	}
	return true, nil
}

func formOf(t byte) Form {
	switch t {
	case unix.DT_REG:
		return File
	case unix.DT_DIR:
		return Folder
	case unix.DT_LNK:
		return Link
	case unix.DT_UNKNOWN:
		return Unknown
	}
	return Special
}

// Stat reads the stat of a name in the folder without following a link. name must come from a listing.
func (d *Dir) Stat(name []byte, st *Stat) error {
	var x unix.Statx_t
	p := unsafe.Pointer(unsafe.SliceData(name)) // a NUL follows: see Listing.Name
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_INO | unix.STATX_SIZE | unix.STATX_MTIME | unix.STATX_CTIME
	for {
		_, _, e := unix.Syscall6(unix.SYS_STATX, uintptr(d.fd), uintptr(p), flags, mask, uintptr(unsafe.Pointer(&x)), 0)
		runtime.KeepAlive(name)
		switch e {
		case 0:
			st.from(&x)
			return nil
		case unix.EINTR:
			continue
		}
		return e
	}
}

func (s *Stat) from(x *unix.Statx_t) {
	s.Size = int64(x.Size)
	s.Mtime = x.Mtime.Sec*1e9 + int64(x.Mtime.Nsec)
	s.Ctime = x.Ctime.Sec*1e9 + int64(x.Ctime.Nsec)
	s.Ino = x.Ino
	s.Mode = modeOf(uint32(x.Mode))
}

const openFileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// open opens a file at a slash path below d, without following links.
func (d *Dir) open(p string) (int, error) {
	name := p
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		if fd, ok := openBeneath(d.fd, p, openFileFlags); ok {
			return fd, nil
		}
		sub, err := d.Below(p[:i])
		if err != nil {
			return -1, err
		}
		defer sub.Close()
		d, name = sub, p[i+1:]
	}
	fd, err := openat(d.fd, name, openFileFlags)
	if errors.Is(err, unix.ELOOP) {
		err = ErrNotFile
	}
	return fd, err
}

// Read returns the content of a regular file at a slash path below d, and its stat from just before. It does not read
// other types of files, nor block on them. The content is valid until the next read in the same folder.
func (d *Dir) Read(p string, limit int64) ([]byte, Stat, error) {
	fd, err := d.open(p)
	if err != nil {
		return nil, Stat{}, err
	}
	defer unix.Close(fd)
	var st Stat
	if err := statFD(fd, &st); err != nil {
		return nil, st, err
	}
	if st.Form() != File {
		return nil, st, ErrNotFile
	}
	if st.Size > limit {
		return nil, st, ErrTooLarge
	}
	if d.content == nil || cap(d.content) < int(st.Size) {
		d.content = make([]byte, st.Size, st.Size+st.Size/2)
	}
	b, err := readAll(fd, d.content[:st.Size])
	return b, st, err
}

func statFD(fd int, st *Stat) error {
	var x unix.Stat_t
	err := unix.Fstat(fd, &x)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstat(fd, &x)
	}
	if err == nil {
		*st = Stat{Size: x.Size, Mtime: x.Mtim.Nano(), Ctime: x.Ctim.Nano(), Ino: x.Ino, Mode: modeOf(x.Mode)}
	}
	return err
}

// modeOf converts the mode of the system.
func modeOf(mode uint32) uint32 {
	return mode&0o7777 | uint32(formOf(byte(mode>>12)))<<formShift // S_IFMT holds the DT_ constants
}

// readAll reads len(b) bytes, which is the size of the file, or fewer if it was truncated meanwhile. It does not wait for
// data that is appended meanwhile: that changes the file's stat, so that it is read again.
func readAll(fd int, b []byte) ([]byte, error) {
	for n := 0; n < len(b); {
		m, err := unix.Read(fd, b[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case m == 0:
			return b[:n], nil
		}
		n += max(m, 0)
	}
	return b, nil
}

// refine adds the fields of the stat that package os does not provide.
func (s *Stat) refine(fi os.FileInfo) {
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.Ctime, s.Ino = sys.Ctim.Nano(), sys.Ino
		s.Mode = sys.Mode&0o7777 | s.Mode&^0o7777
	}
}

// Use makes read put its content into buf if it has room.
func (d *Dir) Use(buf []byte) { d.content = buf }

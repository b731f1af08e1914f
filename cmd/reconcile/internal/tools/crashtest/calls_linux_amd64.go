package crashtest

import (
	"golang.org/x/sys/unix"
)

// shape says where a system call has its arguments. Numbers are of arguments from 1, so that 0 means none.
type shape struct {
	name      string
	op        Op
	fd        int // the file itself
	dir, path int // a folder (none is the current one) and a path below it
	dir2, to  int // the same, for the new name
	size      int // how much is written
	flags     int // of open
}

// shapes are the calls that the filter stops at.
var shapes = map[uint64]shape{
	unix.SYS_WRITE:           {name: "write", op: Write, fd: 1, size: 3},
	unix.SYS_PWRITE64:        {name: "pwrite64", op: Write, fd: 1, size: 3},
	unix.SYS_WRITEV:          {name: "writev", op: Write, fd: 1},
	unix.SYS_PWRITEV:         {name: "pwritev", op: Write, fd: 1},
	unix.SYS_PWRITEV2:        {name: "pwritev2", op: Write, fd: 1},
	unix.SYS_SENDFILE:        {name: "sendfile", op: Write, fd: 1, size: 4},
	unix.SYS_COPY_FILE_RANGE: {name: "copy_file_range", op: Write, fd: 3, size: 5},
	unix.SYS_SPLICE:          {name: "splice", op: Write, fd: 3, size: 5},

	unix.SYS_OPEN:    {name: "open", op: Create, path: 1, flags: 2},
	unix.SYS_CREAT:   {name: "creat", op: Create, path: 1},
	unix.SYS_OPENAT:  {name: "openat", op: Create, dir: 1, path: 2, flags: 3},
	unix.SYS_OPENAT2: {name: "openat2", op: Create, dir: 1, path: 2},
	unix.SYS_MKNOD:   {name: "mknod", op: Create, path: 1},
	unix.SYS_MKNODAT: {name: "mknodat", op: Create, dir: 1, path: 2},

	unix.SYS_TRUNCATE:  {name: "truncate", op: Truncate, path: 1},
	unix.SYS_FTRUNCATE: {name: "ftruncate", op: Truncate, fd: 1},
	unix.SYS_FALLOCATE: {name: "fallocate", op: Truncate, fd: 1},

	unix.SYS_RENAME:    {name: "rename", op: Rename, path: 1, to: 2},
	unix.SYS_RENAMEAT:  {name: "renameat", op: Rename, dir: 1, path: 2, dir2: 3, to: 4},
	unix.SYS_RENAMEAT2: {name: "renameat2", op: Rename, dir: 1, path: 2, dir2: 3, to: 4},
	unix.SYS_LINK:      {name: "link", op: Link, path: 1, to: 2},
	unix.SYS_LINKAT:    {name: "linkat", op: Link, dir: 1, path: 2, dir2: 3, to: 4},
	unix.SYS_SYMLINK:   {name: "symlink", op: Create, path: 2},
	unix.SYS_SYMLINKAT: {name: "symlinkat", op: Create, dir: 2, path: 3},

	unix.SYS_UNLINK:   {name: "unlink", op: Remove, path: 1},
	unix.SYS_UNLINKAT: {name: "unlinkat", op: Remove, dir: 1, path: 2},
	unix.SYS_RMDIR:    {name: "rmdir", op: Remove, path: 1},
	unix.SYS_MKDIR:    {name: "mkdir", op: Mkdir, path: 1},
	unix.SYS_MKDIRAT:  {name: "mkdirat", op: Mkdir, dir: 1, path: 2},

	unix.SYS_CHMOD:     {name: "chmod", op: Attr, path: 1},
	unix.SYS_FCHMOD:    {name: "fchmod", op: Attr, fd: 1},
	unix.SYS_FCHMODAT:  {name: "fchmodat", op: Attr, dir: 1, path: 2},
	unix.SYS_FCHMODAT2: {name: "fchmodat2", op: Attr, dir: 1, path: 2},
	unix.SYS_CHOWN:     {name: "chown", op: Attr, path: 1},
	unix.SYS_LCHOWN:    {name: "lchown", op: Attr, path: 1},
	unix.SYS_FCHOWN:    {name: "fchown", op: Attr, fd: 1},
	unix.SYS_FCHOWNAT:  {name: "fchownat", op: Attr, dir: 1, path: 2},
	unix.SYS_UTIMENSAT: {name: "utimensat", op: Attr, dir: 1, path: 2},

	unix.SYS_FSYNC:     {name: "fsync", op: Sync, fd: 1},
	unix.SYS_FDATASYNC: {name: "fdatasync", op: Sync, fd: 1},
	unix.SYS_SYNCFS:    {name: "syncfs", op: SyncAll},
	unix.SYS_SYNC:      {name: "sync", op: SyncAll},
}

// counts reports whether the mode can strike at a call. A kill before a call that changes nothing has the same result as a kill before the
// next change, so syncs and idle calls count only when they fail; a full disk does not prevent removals.
func counts(c Call, mode Mode, errno unix.Errno) bool {
	switch mode {
	case Torn:
		return c.Op == Write
	case Fail:
		return errno != unix.ENOSPC || c.Op != Remove && c.Op != Attr
	}
	return c.Op != Sync && c.Op != SyncAll && !c.Idle
}

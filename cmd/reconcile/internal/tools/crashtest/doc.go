// Package crashtest stops a program at a chosen change of a file, as a crash, a full disk or an I/O error would. It is
// for tests only.
//
// [Run] starts a command under ptrace, intercepts every system call of all its threads and children that changes files
// below a folder, and at the K-th one kills them all, lets half of a write happen and kills them, or makes the call
// fail. A seccomp filter, installed before the program's first instruction, keeps all other calls at full speed.
//
// [Every] does so for each call of a program in turn. [Lint] searches a list of calls for renames that a power loss
// could undo halfway. [TreeHash] compares two folders.
//
// It does not intercept writes through a memory map, io_uring, and 32-bit programs. The page cache survives a killed
// process, so problems that only a power loss causes are left to Lint. The engine is for linux/amd64.
package crashtest

import "syscall"

// Op is what a call does.
type Op string

const (
	Write    Op = "write"
	Create   Op = "create" // a file by opening it; also opening one to empty it
	Truncate Op = "truncate"
	Rename   Op = "rename"
	Link     Op = "link"
	Remove   Op = "remove" // a file or a folder
	Mkdir    Op = "mkdir"
	Attr     Op = "attr" // mode, owner, times
	Sync     Op = "sync" // of a file or folder
	SyncAll  Op = "syncall"
)

// Call is one system call that changes, or syncs, a file.
type Call struct {
	PID  int // thread
	Name string
	Op   Op
	// Path and To are below the root, "." for itself, "" if outside. To is the new name of Rename and Link.
	Path, To string
	Size     int64         // of a write, as asked for
	Idle     bool          // it changes nothing: it makes what is there, or moves or removes what is not
	Err      syscall.Errno // 0 if it worked
}

// Mode is what happens at the K-th call.
type Mode string

const (
	None Mode = ""     // nothing: only look
	Kill Mode = "kill" // before the call is performed, all processes are killed
	Torn Mode = "torn" // half of the data is written, then all processes are killed; only Write counts
	Fail Mode = "fail" // the call is not performed and returns Spec.Errno
)

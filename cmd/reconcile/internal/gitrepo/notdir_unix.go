//go:build !windows

package gitrepo

import "syscall"

// errNotDir is the system's error for a path with a file as a parent.
const errNotDir = syscall.ENOTDIR

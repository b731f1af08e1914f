package gitrepo

import "syscall"

// errNotDir is what the system says when a parent of a path is a file.
const errNotDir = syscall.ERROR_PATH_NOT_FOUND

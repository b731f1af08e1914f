//go:build unix

package lock

import "golang.org/x/sys/unix"

// noLinks is what link says on a file system that has none (link(2)).
const noLinks = unix.EPERM

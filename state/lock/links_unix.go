//go:build unix

package lock

import "golang.org/x/sys/unix"

// noLinks is the error of link on a file system without links (link(2)).
const noLinks = unix.EPERM

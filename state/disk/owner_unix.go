//go:build unix

package disk

import (
	"os"
	"syscall"
)

// Foreign reports whether the folder at belongs to a user who owns neither dir nor this process, and is not root.
func Foreign(at, dir string) bool {
	owner, ok := ownerOf(at)
	if !ok || owner == 0 || int(owner) == os.Geteuid() {
		return false
	}
	same, ok := ownerOf(dir)
	return !ok || same != owner
}

func ownerOf(dir string) (uid uint32, ok bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return sys.Uid, true
}

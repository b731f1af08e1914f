//go:build darwin || freebsd || netbsd

package state

import (
	"os"
	"syscall"
)

// refine adds the fields of the stat that package os does not provide.
func (s *stat) refine(fi os.FileInfo) {
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.Ctime, s.Ino = sys.Ctimespec.Nano(), uint64(sys.Ino)
	}
}

//go:build darwin || freebsd || netbsd

package disk

import (
	"os"
	"syscall"
)

// refine adds the fields of the Stat that package os does not provide.
func (s *Stat) refine(fi os.FileInfo) {
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.Ctime, s.Ino = sys.Ctimespec.Nano(), uint64(sys.Ino)
	}
}

package gitrepo

import (
	"os"
	"syscall"
)

// statOf returns the part of a file's stat data that the index stores.
func statOf(fi os.FileInfo) fileStat {
	s := fileStat{mtime: timeOf(fi), size: uint32(fi.Size())}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.ctime = fileTime{uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec)}
		s.dev, s.ino, s.uid, s.gid = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	}
	return s
}

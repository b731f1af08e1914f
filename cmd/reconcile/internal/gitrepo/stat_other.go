//go:build !linux && !darwin

package gitrepo

import "os"

// statOf returns the part of a file's stat data that the index stores. Where the system supplies less than git
// expects, git compares contents once and fills in the rest.
func statOf(fi os.FileInfo) fileStat {
	return fileStat{mtime: timeOf(fi), size: uint32(fi.Size())}
}

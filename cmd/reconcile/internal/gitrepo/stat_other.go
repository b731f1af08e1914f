//go:build !linux && !darwin

package gitrepo

import "os"

// statOf takes over what the index keeps of a file. Where less is known than git knows, git compares contents once and
// fills in the rest.
func statOf(fi os.FileInfo) fileStat {
	return fileStat{mtime: timeOf(fi), size: uint32(fi.Size())}
}

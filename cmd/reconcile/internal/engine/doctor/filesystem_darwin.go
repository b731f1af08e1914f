package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// fileSystem describes a file system as reported by the kernel.
type fileSystem struct {
	name string // "apfs", "nfs", …
	free uint64 // bytes available to this user
}

func statFS(dir string) (fileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fileSystem{}, err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if name == "smbfs" {
		name = "smb"
	}
	return fileSystem{name: name, free: st.Bavail * uint64(st.Bsize)}, nil
}

func watchLimits() (watches, instances int, err error) {
	return 0, 0, errors.New("the limit is that of open files")
}

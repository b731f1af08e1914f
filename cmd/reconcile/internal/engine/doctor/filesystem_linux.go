package doctor

import (
	"bytes"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

// fileSystem is what the kernel says of a file system.
type fileSystem struct {
	name string // "ext4", "nfs", …
	free uint64 // bytes that this user may still write
}

// fileSystemNames are the magic numbers of statfs(2), of those that one meets or has to fear.
var fileSystemNames = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "zfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.CIFS_SUPER_MAGIC: "cifs", 0xfe534d42: "cifs",
	unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "fuse", 0x786f4256: "vboxsf",
}

func statFS(dir string) (fileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fileSystem{}, err
	}
	name, known := fileSystemNames[int64(uint32(st.Type))]
	if !known {
		name = fmt.Sprintf("file system of type %#x", uint32(st.Type))
	}
	return fileSystem{name: name, free: st.Bavail * uint64(st.Bsize)}, nil
}

// watchLimits returns how many folders, and by how many programs, one user may watch.
func watchLimits() (watches, instances int, err error) {
	if watches, err = readLimit("max_user_watches"); err != nil {
		return 0, 0, err
	}
	instances, err = readLimit("max_user_instances")
	return watches, instances, err
}

func readLimit(name string) (int, error) {
	text, err := regular.ReadPath("/proc/sys/fs/inotify/" + name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(text)))
}

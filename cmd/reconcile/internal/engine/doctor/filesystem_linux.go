package doctor

import (
	"bytes"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

// fileSystem describes a file system as reported by the kernel.
type fileSystem struct {
	name string // "ext4", "nfs", …
	free uint64 // bytes available to this user
}

// fileSystemNames are the magic numbers of statfs(2) for common and for risky file systems.
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

// watchLimits returns how many folders one user may watch, and with how many programs.
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

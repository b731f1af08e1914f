package disk

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
	"reconcile.dev/reconcile/state/regular"
)

// TickOf returns the resolution of the clock of the file system that holds a folder, for [Stat.RacyAt]. Local file systems
// take the kernel's coarse clock, which ticks every 1 to 10 ms; two ticks leave room for a file that gets its time late. Of
// all others, as of servers, nothing is known: they get MaxTick.
func TickOf(root *os.Root) time.Duration {
	dir, err := regular.Folder(root, ".")
	if err != nil {
		return maxTick
	}
	defer dir.Close()
	var fs unix.Statfs_t
	var res unix.Timespec
	if unix.Fstatfs(int(dir.Fd()), &fs) != nil || !ticksWithKernel(int64(fs.Type)) ||
		unix.ClockGetres(unix.CLOCK_REALTIME_COARSE, &res) != nil || res.Nano() <= 0 {
		return maxTick
	}
	return min(2*time.Duration(res.Nano()), maxTick)
}

func ticksWithKernel(fsType int64) bool {
	switch fsType {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

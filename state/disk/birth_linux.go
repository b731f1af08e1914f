package disk

import "golang.org/x/sys/unix"

// Birth is when a file was made, in nanoseconds; 0 where the file system does not tell. Numbers of files are used again, times are not.
func Birth(path string) int64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

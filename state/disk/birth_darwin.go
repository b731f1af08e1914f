package disk

import "golang.org/x/sys/unix"

// Birth is when a file was made, in nanoseconds; 0 where that is not known. Numbers of files are used again, times are not.
func Birth(path string) int64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Btim.Nano()
}

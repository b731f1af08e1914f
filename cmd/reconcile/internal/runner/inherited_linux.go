package runner

import (
	"os"
	"path/filepath"
	"strconv"
)

// InheritsLease reports whether this process has the lease of a run of the tree in dir, which all processes of a run inherit. It counts
// only descriptors that this process did not open itself.
func InheritsLease(dir string) bool {
	lease, err := os.Stat(filepath.Join(dir, filepath.FromSlash(leaseFile)))
	if err != nil {
		return false
	}
	for _, fd := range numbers("/proc/self/fd") {
		if fd <= 2 {
			continue
		}
		of, err := os.Stat("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || !os.SameFile(of, lease) {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		if err == nil && !closedOnExec(info) {
			return true
		}
	}
	return false
}

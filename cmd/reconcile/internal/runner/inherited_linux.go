package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// InheritsLease reports whether this process has the lease of a run of the tree in dir, which all processes of a run inherit. It counts
// only descriptors that this process did not open itself.
func InheritsLease(dir string) bool {
	for _, fd := range numbers("/proc/self/fd") {
		if fd <= 2 {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		if err != nil || closedOnExec(info) {
			continue
		}
		if of, err := os.Stat("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && hasLeases(dir, of) {
			return true
		}
	}
	return false
}

// hasLeases reports whether a file is one of those with the leases of the tree in dir.
func hasLeases(dir string, of os.FileInfo) bool {
	names := []string{formerLeases}
	for i := range leaseFiles {
		names = append(names, leaseName(i))
	}
	return slices.ContainsFunc(names, func(name string) bool {
		lease, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil && os.SameFile(of, lease)
	})
}

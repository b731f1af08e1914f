package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// neededMemory is how much has to be free in a file system in memory, bytes: several times what the tests use at once.
const neededMemory = 8 << 30

// memoryFolder makes a folder in a file system in memory, in which the tests need not wait for a disk, and returns what frees it; "" where
// none has enough room. The checks of one root, one after the other, have the same folder: its name is part of what go test compares to tell
// whether it has the result of a test already.
func memoryFolder(root string) (dir string, free func()) {
	const shared = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shared, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < neededMemory {
		return "", nil
	}
	const prefix, owner = shared + "/reconcile-check-", ".owner" // a link to the number of a process
	left, _ := filepath.Glob(prefix + "*" + owner)
	for _, link := range left { // of checks that were killed
		of, _ := os.Readlink(link)
		pid, err := strconv.Atoi(of)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			os.RemoveAll(strings.TrimSuffix(link, owner))
			os.Remove(link)
		}
	}
	self := strconv.Itoa(os.Getpid())
	dir = fmt.Sprintf("%s%x", prefix, sha256.Sum256([]byte(root)))[:len(prefix)+12]
	if os.Symlink(self, dir+owner) != nil { // another check of the root runs
		dir = prefix + self
		if os.Symlink(self, dir+owner) != nil {
			return "", nil
		}
	}
	free = func() {
		os.RemoveAll(dir)
		os.Remove(dir + owner)
	}
	if os.MkdirAll(dir, 0o755) != nil { // some tests read it as another user
		free()
		return "", nil
	}
	return dir, free
}

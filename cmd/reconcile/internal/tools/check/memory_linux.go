package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// neededMemory is how much has to be free in a file system in memory, bytes: several times what the tests use at once.
const neededMemory = 8 << 30

// memoryFolder makes a folder in a file system in memory, in which the tests need not wait for a disk; "" where none has enough room.
func memoryFolder() string {
	const shared = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shared, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < neededMemory {
		return ""
	}
	const prefix = shared + "/reconcile-check-"
	left, _ := filepath.Glob(prefix + "*")
	for _, dir := range left { // of checks that were killed
		pid, err := strconv.Atoi(strings.TrimPrefix(dir, prefix))
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			os.RemoveAll(dir)
		}
	}
	dir := prefix + strconv.Itoa(os.Getpid())
	if os.MkdirAll(dir, 0o755) != nil { // some tests read it as another user
		return ""
	}
	return dir
}

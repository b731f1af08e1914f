//go:build !windows

package filelock

const createStream = 0

// stream returns the name to lock: the file itself. It stays readable.
func stream(name string) string { return name }

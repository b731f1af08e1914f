//go:build !windows

package filelock

const createStream = 0

// stream is what is locked: the file itself. Its content can be read all the same.
func stream(name string) string { return name }

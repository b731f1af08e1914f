//go:build !linux && !darwin

package doctor

import "errors"

// fileSystem is what the system says of a file system.
type fileSystem struct {
	name string
	free uint64 // bytes that this user may still write
}

var errUnknown = errors.New("this system is not asked")

func statFS(string) (fileSystem, error) { return fileSystem{}, errUnknown }

func watchLimits() (watches, instances int, err error) { return 0, 0, errUnknown }

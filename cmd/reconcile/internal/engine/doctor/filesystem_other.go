//go:build !linux && !darwin

package doctor

import "errors"

// fileSystem describes a file system as reported by the system.
type fileSystem struct {
	name string
	free uint64 // bytes available to this user
}

var errUnknown = errors.New("this system is not asked")

func statFS(string) (fileSystem, error) { return fileSystem{}, errUnknown }

func watchLimits() (watches, instances int, err error) { return 0, 0, errUnknown }

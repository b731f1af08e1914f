package runner

import (
	"errors"
	"strings"
	"time"
)

// errLeaseTaken reports that another process holds the lease.
var errLeaseTaken = errors.New("lease is taken")

// flat returns a key as one file name. Names of objects and nodes never contain a tilde, so it is injective.
func flat(key string) string { return strings.ReplaceAll(key, "/", "~") }

// freeTries and freeWait bound how long free waits for descriptors that close soon: 50 µs, doubling, 26 ms in
// all.
const (
	freeTries = 9
	freeWait  = 50 * time.Microsecond
)

// free releases our own hold and reports whether no other process has one; then the lease is gone. It waits shortly for
// programs that are just being started elsewhere in this process: between fork and exec they have copies of all our
// descriptors.
func (k *lease) free() (bool, error) {
	free, err := k.freeNow()
	for i := 0; !free && err == nil && i < freeTries; i++ {
		time.Sleep(freeWait << i)
		free, err = k.freeNow()
	}
	return free, err
}

// freeNow is free without any wait.
func (k *lease) freeNow() (bool, error) {
	k.freed = true
	k.release()
	err := k.discard()
	if errors.Is(err, errLeaseTaken) {
		return false, nil
	}
	return err == nil, err
}

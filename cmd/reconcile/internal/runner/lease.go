package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// errLeaseTaken says that some process holds the lease.
var errLeaseTaken = errors.New("lease is taken")

// checkKey refuses keys that cannot be turned into file names and environment values.
func checkKey(key string) error {
	if key == "" || len(key) > 1000 || !fs.ValidPath(key) || strings.ContainsAny(key, "\x00\n\r\\:") {
		return fmt.Errorf("%q cannot be the key of an effect", key)
	}
	return nil
}

// flat turns a key into one file name. Names of objects and nodes never contain a tilde, so it is injective.
func flat(key string) string { return strings.ReplaceAll(key, "/", "~") }

// freeTries and freeWait bound how long free waits for descriptors that are about to be closed: 50 µs, doubling, 26 ms
// in all.
const (
	freeTries = 9
	freeWait  = 50 * time.Microsecond
)

// free gives up our own hold and reports whether nobody else has one; then nothing is left of the lease. It waits a
// little for programs that are just being started elsewhere in this process: until such a one has become another
// program, it has copies of all our descriptors.
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
	k.release()
	err := k.discard()
	if errors.Is(err, errLeaseTaken) {
		return false, nil
	}
	return err == nil, err
}

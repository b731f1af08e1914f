package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
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

// free gives up our own hold and reports whether nobody else has one; then nothing is left of the lease. starting is
// held for reading while commands are started: a command that is being started has copies of all our descriptors
// until it has become another program.
func (k *lease) free(starting *sync.RWMutex) (bool, error) {
	k.release()
	err := k.discard()
	if errors.Is(err, errLeaseTaken) {
		starting.Lock()
		err = k.discard()
		starting.Unlock()
	}
	for i := 0; errors.Is(err, errLeaseTaken) && i < freeTries; i++ { // others in this process start programs, too
		time.Sleep(freeWait << i)
		err = k.discard()
	}
	if errors.Is(err, errLeaseTaken) {
		return false, nil
	}
	return err == nil, err
}

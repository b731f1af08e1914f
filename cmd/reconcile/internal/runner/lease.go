package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// leaseDir holds the leases of what runs. A file without a lock is litter.
const leaseDir = ".reconcile/leases"

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

type leases struct{ root *os.Root }

// lease is a hold on one key: a locked file, of which file is our descriptor. The lock belongs to the open file, which
// the processes of the run share, so it is free when the last of them is gone.
type lease struct {
	root *os.Root
	name string
	file *os.File // nil once given up
}

// of is the lease of key, not taken.
func (l leases) of(key string) *lease {
	return &lease{root: l.root, name: path.Join(leaseDir, flat(key)+".lease")}
}

// take locks the lease of key without waiting; errLeaseTaken if somebody holds it.
func (l leases) take(key string) (*lease, error) {
	k := l.of(key)
	f, err := k.lock()
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.root.MkdirAll(leaseDir, 0o755); err == nil {
			f, err = k.lock()
		}
	}
	if err != nil {
		return nil, err
	}
	k.file = f
	return k, nil
}

// lock opens and locks the file. A file that was removed between the two is no lease: its remover held the lock.
func (k *lease) lock() (*os.File, error) {
	for {
		f, err := k.root.OpenFile(k.name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err = tryLock(f); err != nil {
			f.Close()
			return nil, err
		}
		if linked(f) {
			return f, nil
		}
		f.Close()
	}
}

// release gives up our own hold only; the processes of the run keep theirs.
func (k *lease) release() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// free gives up our own hold and reports whether nobody else has one; then the file is removed.
func (k *lease) free() (bool, error) {
	k.release()
	f, err := k.lock()
	if errors.Is(err, errLeaseTaken) {
		// A command that is just being started elsewhere in this process has copies of all our descriptors until it
		// has become another program.
		syscall.ForkLock.RLock()
		f, err = k.lock()
		syscall.ForkLock.RUnlock()
	}
	switch {
	case errors.Is(err, errLeaseTaken):
		return false, nil
	case err != nil:
		return false, err
	}
	defer f.Close()
	return true, k.root.Remove(k.name)
}

// runner returns the process number of another reconcile that lives and holds the lease; 0 if there is none.
func (k *lease) runner() int {
	f, err := k.root.OpenFile(k.name, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	return claimant(f)
}

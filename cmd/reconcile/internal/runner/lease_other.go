//go:build !linux

package runner

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"reconcile.dev/reconcile/state/regular"
)

// leaseDir holds one locked file for each lease. A file without a lock is a leftover.
const leaseDir = ".reconcile/leases"

type leases struct{ root *os.Root }

// lease is a hold on one key: a locked file, with our descriptor file. The lock belongs to the open file, which the
// processes of the run share, so it is free when the last of them is gone.
type lease struct {
	root  *os.Root
	name  string
	file  *os.File // nil after the release
	freed bool     // whether it was asked to be free
}

func (l *leases) close() error { return nil }

// of returns the lease of key, not taken.
func (l *leases) of(key string) *lease {
	return &lease{root: l.root, name: path.Join(leaseDir, flat(key)+".lease")}
}

// take locks the lease of key without waiting; errLeaseTaken if another process holds it.
func (l *leases) take(key string) (*lease, error) {
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

// lock opens and locks the file. If the file was removed in between, it tries again: the remover held the lock.
func (k *lease) lock() (*os.File, error) {
	for {
		f, _, err := regular.OpenFile(k.root, k.name, os.O_RDWR|os.O_CREATE, 0o644)
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

// release releases our share in the hold; the processes of the run keep theirs.
func (k *lease) release() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// handOver does nothing: with our descriptor, the claim of this process would end.
func (k *lease) handOver() {}

// discard removes the file if no process of the run holds it any more; else errLeaseTaken.
func (k *lease) discard() error {
	f, err := k.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return k.root.Remove(k.name)
}

// runs reports whether another live runner holds the lease.
func (k *lease) runs() bool {
	f, _, err := regular.OpenFile(k.root, k.name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return claimed(f)
}

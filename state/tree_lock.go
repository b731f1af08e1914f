package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

// ErrBusy is the error of Lock and Fold if another process holds the lock for too long: a later attempt may succeed.
var ErrBusy = lock.ErrBusy

// ErrStolen is the error of Write and Release if the lock was lost: the decisions under it must be made again.
var ErrStolen = lock.ErrStolen

// Lock acquires the lock of the whole tree, which the store then holds, and under which all decisions are made and written.
// It is held for milliseconds, in a large tree for longer, and renewed with Working. The error wraps ErrBusy if the lock is
// not available in time.
func (s *Store) Lock(ctx context.Context) (*Lock, error) {
	if err := s.ensureLocal(localDir); err != nil {
		return nil, err
	}
	l, err := lock.Acquire(ctx, s.root, treeLockPath, s.lockOptions())
	if err != nil {
		return nil, fmt.Errorf("lock the tree %s: %w", s.dir, err)
	}
	held := &Lock{l, s}
	s.held.Store(held)
	return held, nil
}

// Locked reports whether another process holds the lock of the tree at this moment.
func (s *Store) Locked() bool {
	if s.held.Load() != nil {
		return false
	}
	info, err := lock.Inspect(s.root, treeLockPath, s.lockOptions())
	return err == nil && (info.State == lock.Live || info.State == lock.Foreign)
}

// lockOptions returns the options of all locks of this store.
func (s *Store) lockOptions() lock.Options {
	o := s.locks
	o.Agent, o.Log = s.opts.Agent, s.opts.Log
	return o
}

// acquire takes the lock of a file under state/, which is next to the file, and makes git ignore such locks.
func (s *Store) acquire(ctx context.Context, p string, o lock.Options) (*lock.Lock, error) {
	if err := s.ignoreLock(p); err != nil {
		return nil, err
	}
	return lock.Acquire(ctx, s.root, p, o)
}

// ignoreLock makes git ignore the lock of a file under state/.
func (s *Store) ignoreLock(p string) error {
	folder := s.layout().state
	if !within(folder, p) {
		return nil
	}
	if _, err := s.Ignore(folder, "*.lock"); err != nil {
		return fmt.Errorf("make git ignore the locks in %s: %w", folder, err)
	}
	return nil
}

// Release releases the lock. ErrStolen says that it had been lost.
func (l *Lock) Release() error {
	l.store.held.CompareAndSwap(l, nil)
	return l.Lock.Release()
}

// Working tells the lock of the tree, if this store holds it, that work goes on and at what, and so renews it; see [lock.Lock.Working].
func (s *Store) Working(at string) {
	if held := s.held.Load(); held != nil {
		held.Working(at)
	}
}

// sweepLock removes the leftover lock of a killed process on p, by taking the lock. It does not touch a lock that is
// held.
func (s *Store) sweepLock(ctx context.Context, p string) error {
	if left, err := fs.Glob(regular.FS(s.root), p+".*"); err != nil || len(left) == 0 {
		return err
	}
	o := s.lockOptions()
	o.Tries = 1
	l, err := s.acquire(ctx, p, o)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tidy up the lock of %s: %w", p, err)
	}
	return l.Release()
}

// SweepLedgers removes the leftover locks of killed processes on ledgers. A fold does so for its own ledger; this is for
// ledgers that need no fold, because the killed process had written everything. It does not touch locks that are held.
func (s *Store) SweepLedgers(ctx context.Context) error {
	return s.sweepLocks(ctx, s.layout().state+"/"+ledgersFolder)
}

func (s *Store) sweepLocks(ctx context.Context, dir string) error {
	files, err := s.lockedIn(dir)
	if err != nil {
		return fmt.Errorf("look for locks in %s: %w", dir, err)
	}
	for name := range files {
		if err := s.sweepLock(ctx, dir+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// lockedIn returns the names of the files in a folder that have a file of the lock protocol.
func (s *Store) lockedIn(dir string) (map[string]bool, error) {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		return nil, nil // the folder does not exist, or Load reports why it is not readable
	}
	defer d.Close()
	files := map[string]bool{}
	var l disk.Listing
	for more := true; more; {
		l.Reset()
		if more, err = d.List(&l); err != nil {
			return nil, err
		}
		for i := range l.Len() {
			if name, ok := strings.CutSuffix(string(l.Name(i)), ".lock"); ok {
				name = strings.TrimSuffix(strings.TrimSuffix(name, ".new"), ".reap")
				files[name] = true
			}
		}
	}
	return files, nil
}

// SweepMirror removes the leftover locks of killed processes on the mirror's files; see SweepLedgers.
func (s *Store) SweepMirror(ctx context.Context) error {
	err := s.sweepLocks(ctx, s.MirrorDir())
	for _, k := range s.layout().kinds {
		err = errors.Join(err, s.sweepLocks(ctx, s.MirrorDir()+"/objects/"+k.Plural))
	}
	return err
}

// SweepMemory sweeps the memory's folder of the leftover locks of killed processes; see SweepLedgers.
func (s *Store) SweepMemory(ctx context.Context) error { return s.sweepLocks(ctx, s.MemoryDir()) }

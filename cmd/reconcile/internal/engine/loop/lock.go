package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// lockLinger bounds how long the lock of the tree is kept across turns in quick succession. Other processes wait no
// longer than this.
const lockLinger = 50 * time.Millisecond

// withLock runs do under the lock of the tree.
func (s *run) withLock(ctx context.Context, do func() error) error {
	if err := s.takeLock(ctx); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, s.unlock())
}

// takeLock takes the lock, unless it is still held from the last turn. It waits for a process that holds it as long as that one goes on.
func (s *run) takeLock(ctx context.Context) error {
	if s.lock != nil {
		if s.lock.Check() == nil {
			return nil
		}
		if err := s.unlock(); err != nil {
			return err
		}
	}
	lock, err := acquire(func() (*state.Lock, error) { return s.loop.Store.Lock(ctx) }, s.waitForLock)
	if err == nil {
		s.lock, s.lockedAt, s.lockWaits = lock, s.loop.Now(), 0
	}
	return err
}

// acquire tries to take the lock of the tree. While another process holds it and goes on, it calls waits, and tries again.
func acquire(try func() (*state.Lock, error), waits func(*lock.BusyError) error) (*state.Lock, error) {
	for {
		taken, err := try()
		busy, ok := errors.AsType[*lock.BusyError](err)
		if !ok || !busy.Works() {
			return taken, err
		}
		if err := waits(busy); err != nil {
			return nil, err
		}
	}
}

// waitForLock says once for which process the run waits, and records what ended meanwhile. The error is that of a run that was told to
// stop, and busy for one that only decides.
func (s *run) waitForLock(busy *lock.BusyError) error {
	if s.whole == nil {
		return busy
	}
	if err := s.whole.Err(); err != nil {
		return err
	}
	if s.lockWaits != busy.PID {
		s.lockWaits = busy.PID
		s.warn(fmt.Sprintf("waiting for the lock of the tree: %s; this run goes on after it", busy.Holder()))
	}
	s.drainReports()
	return s.record()
}

// unlock releases the lock, if it is held.
func (s *run) unlock() error {
	lock := s.lock
	s.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Release()
}

// keepOrUnlock ends a successful turn. It keeps the lock while effects of this process may end at once; wait releases it
// later.
func (s *run) keepOrUnlock() error {
	if s.loop.Linger && len(s.mine) > 0 && s.loop.Share == nil && !s.restoring() && !s.loop.Store.Orphaned() && s.loop.Now().Sub(s.lockedAt) < lockLinger {
		return nil
	}
	return s.unlock()
}

// starvedError says that a run gave up pushing; it is an ErrBusy.
type starvedError struct {
	tries int
	took  time.Duration
}

func (e *starvedError) Error() string {
	return fmt.Sprintf("others keep pushing to the branch: %d tries in %s; what this run recorded is committed here, and the "+
		"next run pushes it", e.tries, e.took.Round(time.Second))
}

func (e *starvedError) Unwrap() error { return state.ErrBusy }

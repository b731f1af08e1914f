package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/state"
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

// takeLock takes the lock, unless it is still held from the last turn.
func (s *run) takeLock(ctx context.Context) error {
	if s.lock != nil {
		if s.lock.Check() == nil {
			return nil
		}
		if err := s.unlock(); err != nil {
			return err
		}
	}
	lock, err := s.loop.Store.Lock(ctx)
	if err == nil {
		s.lock, s.lockedAt = lock, s.loop.Now()
	}
	return err
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

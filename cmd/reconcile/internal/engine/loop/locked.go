package loop

import (
	"context"
	"errors"
	"time"
)

// keepFor bounds how long the lock of the tree is kept over turns that follow each other closely: as long, and no longer,
// other processes wait for it.
const keepFor = 50 * time.Millisecond

// locked does something under the lock of the tree.
func (s *session) locked(ctx context.Context, do func() error) error {
	if err := s.takeLock(ctx); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, s.unlock())
}

// takeLock takes the lock, unless the last turn kept it.
func (s *session) takeLock(ctx context.Context) error {
	if s.lock != nil {
		if s.lock.Check() == nil {
			return nil
		}
		if err := s.unlock(); err != nil {
			return err
		}
	}
	lock, err := s.Store.Lock(ctx)
	if err == nil {
		s.lock, s.lockedAt = lock, s.Now()
	}
	return err
}

// unlock gives up the lock, if it is held.
func (s *session) unlock() error {
	lock := s.lock
	s.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Release()
}

// settleLock ends a turn that went well: the lock is kept while what was started may end at once, until wait gives it up.
func (s *session) settleLock() error {
	if s.Linger && s.started && s.Share == nil && !s.restoring() && !s.Store.Orphaned() && s.Now().Sub(s.lockedAt) < keepFor {
		return nil
	}
	return s.unlock()
}

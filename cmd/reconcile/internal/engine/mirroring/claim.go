package mirroring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
)

// mirrorClaim is the key that a reconciler claims on the remote while it mirrors.
const mirrorClaim = "github-mirror"

// mirrorLockTimeout is how long a run waits for another run on the same tree that mirrors.
const mirrorLockTimeout = 30 * time.Second

// exclusive makes this run the only one that mirrors: on this tree by a lock, and among the reconcilers on a branch by
// a claim. release is nil if another reconciler holds the claim; then that one or a later run mirrors the changes.
func (m *Runner) exclusive(ctx context.Context) (held context.Context, release func(), err error) {
	if err := os.MkdirAll(filepath.Join(m.o.Tree.Dir, ".reconcile", "locks"), 0o755); err != nil {
		return ctx, nil, err
	}
	l := flock.New(filepath.Join(m.o.Tree.Dir, ".reconcile", "locks", "github"))
	wait, cancel := context.WithTimeout(ctx, mirrorLockTimeout)
	defer cancel()
	if ok, err := l.TryLockContext(wait, 100*time.Millisecond); !ok {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another run on this tree is at it; the next one goes on")
		}
		return ctx, nil, err
	}
	unlock := func() { _ = l.Unlock() } // the end of the process unlocks it, too
	if m.o.Share == nil {
		return ctx, unlock, nil
	}
	held, drop, err := holdClaim(ctx, m.o.Share.Claims(), mirrorClaim, m.o.Settings.Git.ClaimFor.Std())
	if err != nil || drop == nil {
		unlock()
		return ctx, nil, err
	}
	return held, func() { drop(); unlock() }, nil
}

// errUnheld is the error of work that was aborted because another reconciler may do it now.
var errUnheld = errors.New("the claim on the remote was lost, so another reconciler may be at it; the next run goes on")

// unheldClaim replaces an error that was caused by the loss of a claim with errUnheld.
func unheldClaim(ctx, held context.Context, err error) error {
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return errUnheld
	}
	return err
}

// holdClaim claims key among reconcilers and renews the claim during a run; each is its lifetime. drop is nil if another
// reconciler holds the claim. held ends when the claim is lost, or may be: it expired while the remote was unreachable.
func holdClaim(ctx context.Context, r claims.Remote, key string, each time.Duration) (held context.Context, drop func(), err error) {
	began := time.Now()
	refused, err := r.Take(ctx, []string{key})
	if err != nil || len(refused) > 0 {
		return ctx, nil, err
	}
	held, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer cancel()
		renewClaim(held, r, key, each, began.Add(each))
	}()
	return held, func() {
		cancel()
		<-over
		_ = r.Drop(context.WithoutCancel(ctx), []string{key}) // otherwise it expires
	}, nil
}

// renewClaim renews a claim that is valid until a time. It returns when the claim is lost, or may be, or ctx ends.
func renewClaim(ctx context.Context, r claims.Remote, key string, each time.Duration, until time.Time) {
	tick := time.NewTicker(each / 3)
	defer tick.Stop()
	for {
		wait := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
			return
		case <-tick.C:
		}
		wait.Stop()
		began := time.Now()
		ask, cancel := context.WithDeadline(ctx, until)
		lost, err := r.Renew(ask, []string{key})
		cancel()
		switch {
		case err == nil && len(lost) > 0:
			return
		case err == nil:
			until = began.Add(each)
		}
	}
}

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

// mirrorClaim is what a reconciler claims on the remote while it mirrors.
const mirrorClaim = "github-mirror"

// mirrorPatience is how long a run waits for another on the same tree that mirrors.
const mirrorPatience = 30 * time.Second

// alone has this run mirror alone: on this tree by a lock, and among those that share a branch by a claim. release is nil
// if another one does it, which then is in step with what it has, or a later run with this.
func (m *Runner) alone(ctx context.Context) (held context.Context, release func(), err error) {
	if err := os.MkdirAll(filepath.Join(m.o.Tree.Dir, ".reconcile", "locks"), 0o755); err != nil {
		return ctx, nil, err
	}
	l := flock.New(filepath.Join(m.o.Tree.Dir, ".reconcile", "locks", "github"))
	wait, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	if ok, err := l.TryLockContext(wait, 100*time.Millisecond); !ok {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another run on this tree is at it; the next one goes on")
		}
		return ctx, nil, err
	}
	unlock := func() { _ = l.Unlock() } // the end of the process does it, too
	if m.o.Share == nil {
		return ctx, unlock, nil
	}
	held, drop, err := hold(ctx, m.o.Share.Claims(), mirrorClaim, m.o.Settings.Git.ClaimFor.Std())
	if err != nil || drop == nil {
		unlock()
		return ctx, nil, err
	}
	return held, func() { drop(); unlock() }, nil
}

// errUnheld is the error of what was broken off because another reconciler may do it now.
var errUnheld = errors.New("the claim on the remote was lost, so another reconciler may be at it; the next run goes on")

// unheld is an error of something that was done while a claim was held.
func unheld(ctx, held context.Context, err error) error {
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return errUnheld
	}
	return err
}

// hold claims something among reconcilers, each time for a while, for as long as a run works on it. drop is nil while
// another one has it. held ends when the claim is lost, or may be: it ran out while the remote could not be reached.
func hold(ctx context.Context, r claims.Remote, key string, each time.Duration) (held context.Context, drop func(), err error) {
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
		renewing(held, r, key, each, began.Add(each))
	}()
	return held, func() {
		cancel()
		<-over
		_ = r.Drop(context.WithoutCancel(ctx), []string{key}) // else it runs out
	}, nil
}

// renewing renews a claim that stands until a time, and returns when it is lost, or may be, or ctx ends.
func renewing(ctx context.Context, r claims.Remote, key string, each time.Duration, until time.Time) {
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

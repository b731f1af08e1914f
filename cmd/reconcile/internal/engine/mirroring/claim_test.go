package mirroring

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/controllers/settle"
)

// claimBoard is a remote in memory on which reconcilers claim things.
type claimBoard struct {
	mu    sync.Mutex
	by    string // who has the claim
	until time.Time
	times int // how often it was renewed
	away  bool
}

// claimant is one reconciler before a board.
type claimant struct {
	*claimBoard
	name string
	each time.Duration
}

var errAway = errors.New("the remote is away")

func (c claimant) Take(_ context.Context, keys []string) (refused []claims.Claim, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.away:
		return nil, errAway
	case c.by != "" && c.by != c.name && time.Now().Before(c.until):
		return []claims.Claim{{Key: keys[0], Until: c.until}}, nil
	}
	c.by, c.until = c.name, time.Now().Add(c.each)
	return nil, nil
}

func (c claimant) Reserve(context.Context, []settle.Effect) ([]claims.Claim, []string, error) {
	return nil, nil, errors.New("the mirror reserves nothing")
}

func (c claimant) Renew(_ context.Context, keys []string) (lost []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.away:
		return nil, errAway
	case c.by != c.name:
		return slices.Clone(keys), nil
	}
	c.until = time.Now().Add(c.each)
	c.times++
	return nil, nil
}

func (c claimant) Drop(context.Context, []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == c.name {
		c.by = ""
	}
	return nil
}

func (c claimant) Done(context.Context, []string) ([]string, error) { return nil, nil }

// TestAMirrorThatTakesLongKeepsItsClaim: the first mirroring of a large tree, at one write a second, takes longer than a
// claim stands. Nobody else begins meanwhile, and the next one may as soon as it is done.
func TestAMirrorThatTakesLongKeepsItsClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 2 * time.Minute
		board := new(claimBoard)
		me, other := claimant{board, "me", each}, claimant{board, "other", each}
		held, drop, err := holdClaim(t.Context(), me, mirrorClaim, each)
		if err != nil || drop == nil {
			t.Fatalf("it was not had: %v", err)
		}
		for begun := time.Now(); time.Since(begun) < time.Hour; {
			<-time.After(7 * time.Second)
			if _, drop, err := holdClaim(t.Context(), other, mirrorClaim, each); err != nil || drop != nil {
				t.Fatalf("after %s another one has it, too (%v)", time.Since(begun), err)
			}
		}
		if held.Err() != nil {
			t.Errorf("what is held ended: %v", held.Err())
		}
		if want := int(time.Hour / (each / 3)); board.times < want-1 || board.times > want {
			t.Errorf("it was renewed %d times in an hour, want %d", board.times, want)
		}
		drop()
		if _, drop, err := holdClaim(t.Context(), other, mirrorClaim, each); err != nil || drop == nil {
			t.Errorf("it was given back, and nobody else gets it: %v", err)
		} else {
			drop()
		}
	})
}

// TestAMirrorWithoutAClaimStops: a reconciler of which another one took the claim ends its work, and so does one that cannot
// tell, before the claim runs out.
func TestAMirrorWithoutAClaimStops(t *testing.T) {
	t.Parallel()
	const each = 2 * time.Minute
	for name, c := range map[string]struct {
		harm  func(*claimBoard)
		after time.Duration // at most
	}{
		"taken over": {func(b *claimBoard) { b.by = "other" }, each / 3},
		"away":       {func(b *claimBoard) { b.away = true }, each},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				board := new(claimBoard)
				held, drop, err := holdClaim(t.Context(), claimant{board, "me", each}, mirrorClaim, each)
				if err != nil || drop == nil {
					t.Fatalf("it was not had: %v", err)
				}
				defer drop()
				<-time.After(each * 2 / 3)
				synctest.Wait()
				board.mu.Lock()
				c.harm(board)
				until := board.until
				board.mu.Unlock()
				begun := time.Now()
				<-held.Done()
				if took := time.Since(begun); took > c.after || time.Now().After(until) {
					t.Errorf("it ended after %s, the claim at %s", took, until.Sub(begun))
				}
				if err := unheldClaim(t.Context(), held, held.Err()); !errors.Is(err, errUnheld) {
					t.Errorf("it is told as %v", err)
				}
			})
		})
	}
}

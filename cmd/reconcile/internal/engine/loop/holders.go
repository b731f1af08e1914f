package loop

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/state"
)

// patience is how long a one-shot run with nothing else to do waits for another process before it says so.
const patience = 10 * time.Second

// holder is another process that performs something which this run waits for.
type holder struct {
	since time.Time // when this run began to wait for it
	told  bool
}

// tellOfHolders says, once of each, for which processes this run has been waiting: one that hangs would never be noticed
// else.
func (s *session) tellOfHolders() {
	claims := map[string][]*state.Claim{}
	if len(s.mine) == 0 && s.foreign() {
		claims = s.heldElsewhere()
	}
	maps.DeleteFunc(s.holders, func(process string, _ holder) bool { return claims[process] == nil })
	now := s.Now()
	for _, process := range slices.Sorted(maps.Keys(claims)) {
		h, known := s.holders[process]
		if !known {
			h.since = now
		}
		if !h.told && now.Sub(h.since) >= patience {
			h.told = true
			s.warn(holderText(claims[process], now))
		}
		s.holders[process] = h
	}
}

// heldElsewhere lists the claims of other processes, by process, in the order of their starts.
func (s *session) heldElsewhere() map[string][]*state.Claim {
	out := map[string][]*state.Claim{}
	for _, kind := range s.tree.Kinds() {
		for _, e := range s.tree.Active(kind) {
			for i := range e.Claims {
				if c := &e.Claims[i]; c.Process != s.id() {
					out[c.Process] = append(out[c.Process], c)
				}
			}
		}
	}
	for _, claims := range out {
		slices.SortStableFunc(claims, func(a, b *state.Claim) int {
			return a.StartedAt.Compare(b.StartedAt.Time)
		})
	}
	return out
}

func holderText(claims []*state.Claim, now time.Time) string {
	c := claims[0]
	if i := slices.IndexFunc(claims, func(c *state.Claim) bool { return !c.StartedAt.IsZero() }); i > 0 {
		c = claims[i] // rather one that runs than one that only will
	}
	what, at := c.Node+" of "+c.Owner, "has claimed and not started"
	if n := len(claims) - 1; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	if !c.StartedAt.IsZero() {
		at = "has run for " + now.Sub(c.StartedAt.Time).Round(time.Second).String()
	}
	return fmt.Sprintf("waiting for %s, which process %d %s; if that process hangs, continue it (kill -CONT %[2]d), or end it "+
		"(kill -9 %[2]d) and run again", what, c.Holder(), at)
}

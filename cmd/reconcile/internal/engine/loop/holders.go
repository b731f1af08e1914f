package loop

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// warnAfter is how long an otherwise idle one-shot run waits for another process before it warns.
const warnAfter = 10 * time.Second

// holder is another process whose effect blocks this run.
type holder struct {
	since  time.Time // when this run began to wait for it
	warned bool
}

// warnOfHolders warns once for each process that this run has been waiting for. Without it, a hanging process would go
// unnoticed.
func (s *run) warnOfHolders() {
	claims := map[string][]*state.Claim{}
	if len(s.mine) == 0 && s.waitsForOthers() {
		claims = s.claimsOfOthers()
	}
	maps.DeleteFunc(s.holders, func(process string, _ holder) bool { return claims[process] == nil })
	now := s.loop.Now()
	for _, process := range slices.Sorted(maps.Keys(claims)) {
		h, known := s.holders[process]
		if !known {
			h.since = now
		}
		if !h.warned && now.Sub(h.since) >= warnAfter {
			h.warned = true
			s.warn(holderText(claims[process], now))
		}
		s.holders[process] = h
	}
}

// claimsOfOthers lists the claims of other processes, by process, ordered by start.
func (s *run) claimsOfOthers() map[string][]*state.Claim {
	out := map[string][]*state.Claim{}
	for _, kind := range s.tree.Kinds() {
		for _, e := range s.tree.Active(kind) {
			for i := range e.Claims {
				if c := &e.Claims[i]; c.Process != s.processID() {
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
		c = claims[i] // prefer a running effect over one that is only claimed
	}
	what, at := workOf(c)+c.Node+" of "+c.Owner, "has claimed and not started"
	if n := len(claims) - 1; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	if !c.StartedAt.IsZero() {
		at = "has run for " + now.Sub(c.StartedAt.Time).Round(time.Second).String()
	}
	return fmt.Sprintf("waiting for %s, which process %d %s; if that process hangs, continue it (kill -CONT %[2]d), or end it "+
		"(kill -9 %[2]d) and run again", what, c.Holder(), at)
}

// workOf says what a claim is for, in front of the node's name; "" for its run.
func workOf(c *state.Claim) string {
	switch {
	case c.Lands != "":
		return "the landing of "
	case c.Step == schemas.StepTest, c.Step == schemas.StepWrite:
		return "the test of "
	case c.Verifies != "":
		return "the inspection of "
	}
	return ""
}

// waitsForOthers reports whether another process performs a selected effect, wanted or not: while it is being stopped,
// the statuses are not final. Unselected effects matter while they may occupy slots that selected ones need, and so does what waits
// for places that are due to another process.
func (s *run) waitsForOthers() bool {
	return (s.loop.Store.ClaimedElsewhere() || len(s.turns.Lacks) > 0) && (s.loop.Only == nil || s.othersClaimSelected() || s.hasUnclaimed())
}

// othersClaimSelected reports whether another process has claimed a selected effect.
func (s *run) othersClaimSelected() bool {
	in := s.loop.Only.In(s.tree)
	for e := range s.loop.Only.Entries(s.tree) {
		for i := range e.Claims {
			if c := &e.Claims[i]; c.Process != s.processID() && in(e.Ref, c.Node) {
				return true
			}
		}
	}
	return false
}

// warnOfDay warns and records an event, once a day, if the budget of the day is nearly used.
func (s *run) warnOfDay() {
	settings := s.tree.Settings()
	if settings.Budget.Day == nil {
		return
	}
	low, day := budgets.SumsOf(s.decider.OfRun(), s.tree, s.loop.Now()).LowDay(settings)
	if low != "" && day != s.warnedDay {
		s.warnedDay = day
		s.warn(low)
		s.recordEvents([]settle.Event{{Time: schemas.NewTime(s.loop.Now()), Ref: schemas.SettingsKind.Ref("settings"),
			Reason: settle.ReasonBudgetLow, Message: low, Warning: true}})
	}
}

// warnOfAwaited warns once that this run waits for effects of other reconcilers.
func (s *run) warnOfAwaited() {
	if s.awaitedWarned || len(s.awaited) == 0 || len(s.mine) > 0 || time.Since(s.awaitedSince) < warnAfter {
		return
	}
	s.awaitedWarned = true
	e := s.awaited[0]
	if !slices.Contains(s.remoteOwners, e.Owner) {
		s.warn(fmt.Sprintf("waiting for other reconcilers, which have reserved what the budgets of %s of %s leave; their claims on the "+
			"remote expire in %s unless they renew them", e.Node, e.Owner, time.Until(s.otherClaims[e.Key]).Round(time.Second)))
		return
	}
	what := e.Node + " of " + e.Owner.String()
	if n := len(s.awaited) - 1; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	s.warn(fmt.Sprintf("waiting for %s, which another reconciler performs; unless it renews its claim on the remote, this run "+
		"takes over in %s", what, time.Until(s.otherClaims[e.Key]).Round(time.Second)))
}

// heldError is the error of a run in which a remaining process of a killed run kept a node from starting.
func (s *run) heldError() error {
	for _, key := range slices.Sorted(maps.Keys(s.held)) {
		return fmt.Errorf("%s: %s: %w", key, s.held[key], state.ErrBusy)
	}
	return nil
}

package loop

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
)

// wait returns when there is reason for another turn: a result, a hint, a wake-up, or time to look again. It returns
// errStopped when ctx ends. A lock that the last turn kept is given up if nothing happens at once.
func (s *session) wait(ctx context.Context) error {
	timer := time.NewTimer(s.untilNext())
	defer timer.Stop()
	var quick <-chan time.Time
	if s.lock != nil {
		quick = time.After(startFor)
	}
	for {
		select {
		case <-quick:
			if err := s.unlock(); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return errStopped
		case <-s.Perform.Notify():
			s.hear()
			s.gather(ctx)
		case h, ok := <-s.hints:
			if !ok {
				s.hints = nil
				return nil
			}
			s.hint(h)
		case <-timer.C:
			if s.foreign() || s.specsDue() {
				s.rescan = true
			}
		}
		return nil
	}
}

// gather collects further results for as long as enough work is queued that no processor waits for a turn, and the end of
// what has just started, so that of a quick command there is nothing to decide but its result.
func (s *session) gather(ctx context.Context) {
	full := time.NewTimer(gatherFor)
	defer full.Stop()
	quick := time.NewTimer(startFor)
	defer quick.Stop()
	started := false
	for !started && onlyStarts(s.inbox) || s.Perform.Backlog() >= 2*s.CPUs {
		select {
		case <-s.Perform.Notify():
			s.hear()
		case <-quick.C:
			started = true
		case <-full.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func onlyStarts(reports []controllers.Report) bool {
	return !slices.ContainsFunc(reports, func(r controllers.Report) bool { return r.Kind != controllers.Started })
}

// hear takes the performer's reports into the inbox.
func (s *session) hear() {
	reports := s.Perform.Drain()
	s.inbox = append(s.inbox, reports...)
	if s.Observe != nil && len(reports) > 0 {
		s.Observe(reports, s.tree)
	}
}

func (s *session) hint(h Hint) {
	if h.Full {
		s.rescan = true
	}
	if h.Written {
		s.changedAt = s.Now()
	}
	s.paths = append(s.paths, h.Paths...)
}

// untilNext is the time to the next turn if nothing happens.
func (s *session) untilNext() time.Duration {
	const longest = time.Hour
	now := s.Now()
	next := now.Add(longest)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, w := range s.wakes {
		sooner(w.at)
	}
	if at := s.wakeMemory(); s.watching && !at.IsZero() && !s.barred() {
		sooner(at)
	}
	if s.foreign() || s.Store.Orphaned() {
		sooner(now.Add(pollForeign))
	}
	if s.watching && len(s.barredLedgers) > 0 {
		sooner(now.Add(pollLedgers))
	}
	if !s.watching {
		sooner(s.scanned.Add(s.scanEvery()))
	} else if !s.changedAt.IsZero() && !s.barred() {
		sooner(s.changedAt.Add(s.commitDelay()))
	}
	return min(max(next.Sub(now), 0), s.untilShared())
}

// scanEvery keeps the share of looking for changed files below a twentieth of the time.
func (s *session) scanEvery() time.Duration { return max(pollSpecs, 20*s.scanCost) }

func (s *session) specsDue() bool {
	return !s.watching && !s.Now().Before(s.scanned.Add(s.scanEvery()))
}

// quiet reports whether a watcher has something to tidy up and nothing has happened for the commit delay.
func (s *session) quiet() bool {
	if s.withheld && s.changedAt.IsZero() && len(s.open()) == 0 {
		s.changedAt = s.Now() // what was left for a later commit may be committed now
	}
	changed := !s.changedAt.IsZero() && !s.Now().Before(s.changedAt.Add(s.commitDelay()))
	return len(s.mine) == 0 && (changed || s.compactionDue()) && !s.barred()
}

func (s *session) commitDelay() time.Duration { return s.tree.Settings().Watch.CommitDelay.Std() }

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// nextWake is the earliest time at which something becomes due; zero when nothing does.
func (s *session) nextWake() time.Time {
	var next time.Time
	for _, w := range s.wakes {
		if next.IsZero() || w.at.Before(next) {
			next = w.at
		}
	}
	return next
}

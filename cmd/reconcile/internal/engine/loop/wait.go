package loop

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
)

// wait returns when another turn is due: after a result, a hint, a timer, or the scan interval. It returns errStopped
// when ctx ends. A lock that is held from the last turn is released if nothing happens at once.
func (s *run) wait(ctx context.Context) error {
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
		case <-s.loop.Perform.Notify():
			s.drainReports()
			s.gather(ctx)
		case c := <-s.checked:
			s.noteChecked(c)
		case h, ok := <-s.hints:
			if !ok {
				s.hints = nil
				return nil
			}
			s.hint(h)
		case <-timer.C:
			if s.waitsForOthers() || s.specsDue() {
				s.rescan = true
			}
		}
		return nil
	}
}

// gather collects further results while enough work is queued that no processor waits for a turn. It also waits briefly
// for the end of effects that just started, so that a quick command needs only one decision.
func (s *run) gather(ctx context.Context) {
	full := time.NewTimer(s.gatherTime())
	defer full.Stop()
	quick := time.NewTimer(startFor)
	defer quick.Stop()
	started := false
	for !started && onlyStarts(s.inbox) || s.loop.Perform.Backlog() >= 2*s.loop.CPUs {
		select {
		case <-s.loop.Perform.Notify():
			s.drainReports()
		case <-quick.C:
			started = true
		case <-full.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// gatherTime is for how long results are gathered: longer where a turn takes long, so that turns stay a small part of the time.
func (s *run) gatherTime() time.Duration {
	return min(max(gatherFor, 5*s.turnCost), maxGather*gatherFor)
}

func onlyStarts(reports []settle.Report) bool {
	return !slices.ContainsFunc(reports, func(r settle.Report) bool { return r.Kind.Ends() })
}

// drainReports appends the performer's reports to the inbox.
func (s *run) drainReports() {
	reports := s.loop.Perform.Drain()
	s.inbox = append(s.inbox, reports...)
	if s.loop.Observe != nil && len(reports) > 0 {
		s.loop.Observe(reports, s.tree)
	}
}

func (s *run) hint(h Hint) {
	if h.Full {
		s.rescan = true
	}
	if h.Written {
		s.changedAt = s.loop.Now()
	}
	s.paths = append(s.paths, h.Paths...)
}

// untilNext is the time to the next turn if nothing happens.
func (s *run) untilNext() time.Duration {
	const longest = time.Hour
	now := s.loop.Now()
	next := now.Add(longest)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, w := range s.wakes {
		sooner(w.at)
	}
	if s.watching && len(s.mine) == 0 && !s.backingOff() { // what runs must end first, which is reported
		if at := s.nextCompaction(); !at.IsZero() {
			sooner(at)
		}
		if !s.changedAt.IsZero() {
			sooner(s.changedAt.Add(s.commitDelay()))
		}
	}
	if s.waitsForOthers() || s.loop.Store.Orphaned() {
		sooner(now.Add(pollForeign))
	}
	if s.watching && len(s.notReady)+len(s.unproved) > 0 {
		sooner(now.Add(pollCommits))
	}
	if s.watching && len(s.starts.waiting) > 0 {
		sooner(s.starts.again)
	}
	if at := s.nextCheck(); !at.IsZero() {
		sooner(at)
	}
	if s.watching && len(s.busyLedgers) > 0 {
		sooner(now.Add(pollLedgers))
	}
	if !s.watching {
		sooner(s.scannedAt.Add(s.scanEvery()))
	}
	return min(max(next.Sub(now), 0), s.untilShared())
}

// scanEvery keeps scans for changed files below a twentieth of the time.
func (s *run) scanEvery() time.Duration { return max(pollSpecs, 20*s.scanCost) }

// nextWake is the earliest timer of an object; zero: none.
func (s *run) nextWake() time.Time {
	var next time.Time
	for _, w := range s.wakes {
		if next.IsZero() || w.at.Before(next) {
			next = w.at
		}
	}
	return next
}

func (s *run) pollDue() bool {
	return (s.watching || len(s.awaited) > 0) && !time.Now().Before(s.pollAt)
}

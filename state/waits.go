package state

import (
	"maps"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Wait is what a live process waits for: effects that it could perform, and may not claim since others have the places.
type Wait struct {
	// Process is the name of the process in claims.
	Process string
	// Groups counts these effects, by the groups that have no room.
	Groups map[string]int
	// Since is when the last tenure of the process began. A tenure begins with a claim, and lasts for [tenure]: in it the process is
	// due places that cannot be divided.
	Since schemas.Time
}

// tenure is much longer than processes take to notice each other.
const tenure = time.Second

// Tenure is 1 in the tenure of the process, else 0.
func (w Wait) Tenure(now time.Time) int {
	if now.Sub(w.Since.Time) < tenure {
		return 1
	}
	return 0
}

// waitFor is for how long a process that says nothing still counts as waiting; it says something at least every waitAgain.
const (
	waitFor   = 5 * time.Second
	waitAgain = time.Second
)

// Wait writes to the journal the effects that this process waits for, by group; without any, it no longer waits. A process that waits
// must call it at least every waitFor, or others no longer leave it places. Calls must not be concurrent.
func (j *Journal) Wait(groups map[string]int, at time.Time) error {
	j.store.mu.Lock()
	same := maps.Equal(j.view.waits, groups)
	j.store.mu.Unlock()
	now := j.store.opts.FileNow()
	if same && (len(groups) == 0 || now.Sub(j.waitedAt) < waitAgain) {
		return nil
	}
	j.waitedAt = now
	if same {
		return j.store.root.Chtimes(j.path(), now, now)
	}
	t := schemas.NewTime(at)
	return j.write([]line{{Op: opWait, At: &t, Groups: groups}}, false)
}

// Waits returns what other live processes wait for, as of the last load, and when the last tenure of this one began; zero: it had none.
func (s *Store) Waits() (others []Wait, since schemas.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own.Load()
	if own != nil {
		since = own.view.since
	}
	if s.model == nil {
		return nil, since
	}
	now := s.opts.FileNow()
	for _, v := range s.model.journals {
		heard := time.Unix(0, v.stat.Mtime)
		if v.alive && len(v.waits) > 0 && now.Sub(heard) < waitFor && (own == nil || v != own.view) {
			others = append(others, Wait{v.name, v.waits, v.since})
		}
	}
	return others, since
}

// applyWait applies a claim, which may begin a tenure, or a line about waiting. Who begins to wait comes after those who wait.
func (v *journalView) applyWait(l line) {
	switch {
	case l.At == nil:
	case l.Op == opClaim && l.At.Sub(v.since.Time) >= tenure:
		v.since = *l.At
	case l.Op == opWait:
		if v.waits = l.Groups; v.since.IsZero() {
			v.since = schemas.NewTime(l.At.Add(-tenure))
		}
	}
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Memory keeps what agents learned. Its files are written under locks of their own, so that captures need not wait for
// the tree; all methods but Told are called under the lock of the tree.
type Memory interface {
	// Settle brings the memory in step with the observations of the tree. The error wraps state.ErrBusy if a lock cannot
	// be had: what is not in the memory yet is taken in later.
	Settle(context.Context, *state.Tree) (Settled, error)
	// Compact shortens what nobody has added to for long.
	Compact(context.Context) (Settled, error)
	// Anchor notes the content that the files of an observation have now.
	Anchor(*schemas.ObservationSpec)
	// Save keeps for later processes what was found out about files. It is called before the tree counts as settled: what a
	// process leaves that is killed in the middle is swept by a run that has something to look for.
	Save()
	// Told returns what came up since the last call.
	Told() []controllers.Event
}

// Settled is what became of the memory.
type Settled struct {
	// Edited are the observations whose specs differ from what the memory took in, with the digest of that.
	Edited map[string]string
	// Events tell what was done, and what a person should know.
	Events []controllers.Event
	// Wrote counts the files below the memory's folder that were written, also before an error.
	Wrote int
}

// compactEvery is how often it is looked whether something is to be compacted.
const compactEvery = 24 * time.Hour

// remembers reports whether there is a memory.
func (s *session) remembers() bool {
	on := s.tree.Settings().Memory.Enabled
	return s.Memory != nil && (on == nil || *on)
}

// settleMemory brings the memory in step with the observations, before anything starts that is to be reminded of them.
// A lock that cannot be had holds up nothing: it is tried again when the run tidies up, which is what last says.
func (s *session) settleMemory(ctx context.Context, last bool) error {
	if s.Memory == nil {
		return nil
	}
	s.tell(s.Memory.Told())
	if s.recollect == settled || s.recollect == busy && !last || !s.remembers() {
		return nil
	}
	if len(s.tree.Entries(schemas.ObservationKind.Name)) == 0 && !s.Store.HasMemory() {
		s.recollect = settled
		return nil
	}
	if s.recollect == unknown {
		if err := s.Store.SweepMemory(ctx); err != nil {
			return err
		}
	}
	for range settleTries {
		done, err := s.Memory.Settle(ctx, s.tree)
		if errors.Is(err, state.ErrBusy) {
			s.recollect = busy
			return s.noted(done)
		}
		if err != nil {
			return fmt.Errorf("bring the memory in step with the tree: %w", err)
		}
		s.recollect = settled
		s.accept(done.Edited)
		if err := s.remembered(done); err != nil || s.recollect == settled {
			return err
		}
	}
	return nil
}

// settleTries bounds how often a turn looks into the memory again because something was written there meanwhile. What
// is left is seen to at the next turn.
const settleTries = 10

// recollection is how the memory stands to the tree.
type recollection int

const (
	unknown recollection = iota // at the beginning
	behind                      // observations changed, or the memory's files
	busy                        // the same, and a lock could not be had
	settled
)

// remembered takes in what was done to the memory. What others wrote there meanwhile is no news at the next look
// either, so that the memory has to be looked into once more.
func (s *session) remembered(done Settled) error {
	if done.Wrote > 0 {
		s.recollect = behind
	}
	return s.noted(done)
}

// noted takes in what was done to the memory, whether or not that was all.
func (s *session) noted(done Settled) error {
	s.tell(done.Events)
	if done.Wrote == 0 {
		return nil
	}
	s.wrote += done.Wrote
	s.changedAt = s.Now()
	return s.Store.RefreshMemory()
}

// forgets reports whether something that was captured is not in the memory, since a lock cannot be had.
func (s *session) forgets() bool { return s.remembers() && s.recollect != settled }

// accept notes which observations were edited after the memory took them in, and decides on them.
func (s *session) accept(edited map[string]string) {
	var entries []*state.Entry
	for _, e := range s.tree.Entries(schemas.ObservationKind.Name) {
		if e.Object == nil {
			continue
		}
		accepted, was := edited[e.Name], e.Accepted
		if accepted == "" && (was != "" || e.HasStatus()) {
			accepted = e.Object.Digest
		}
		if accepted == was {
			continue
		}
		next := *e
		next.Accepted = accepted
		entries = append(entries, &next)
		if s.dirty != nil {
			s.dirty[e.Ref] = true
		}
	}
	if len(entries) == 0 {
		return
	}
	s.tree = s.tree.With(entries...)
	s.decide()
}

// compactMemory shortens what nobody has added to for long, once in a run and once a day.
func (s *session) compactMemory(ctx context.Context) error {
	if !s.remembers() || !s.compacts() || !s.compacted.IsZero() && !s.compactionDue() {
		return nil
	}
	s.compacted = s.Now()
	if s.recollect != settled {
		return nil
	}
	done, err := s.Memory.Compact(ctx)
	if errors.Is(err, state.ErrBusy) {
		s.recollect = busy // it is on record, and not in the files
		return s.noted(done)
	}
	if err != nil {
		return fmt.Errorf("compact the memory: %w", err)
	}
	if err := s.remembered(done); err != nil {
		return err
	}
	return s.settleMemory(ctx, true)
}

// compacts reports whether there is a memory that is compacted by itself.
func (s *session) compacts() bool {
	after := s.tree.Settings().Memory.CompactAfterDays
	return (after == nil || *after > 0) && s.Store.HasMemory()
}

// wakeMemory is when to look next whether something is to be compacted; zero: never.
func (s *session) wakeMemory() time.Time {
	if s.compacted.IsZero() || !s.remembers() || !s.compacts() {
		return time.Time{}
	}
	return s.compacted.Add(compactEvery)
}

// compactionDue reports whether it is time to look again.
func (s *session) compactionDue() bool {
	at := s.wakeMemory()
	return !at.IsZero() && !s.Now().Before(at)
}

func (s *session) tell(events []controllers.Event) {
	if s.Record != nil && len(events) > 0 {
		s.tellNews() // which was before
		s.Record(events)
	}
}

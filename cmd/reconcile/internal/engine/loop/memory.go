package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Memory stores what agents learned. Its files have their own locks, so that captures need not wait for the tree. All
// methods except DrainEvents are called under the lock of the tree.
type Memory interface {
	// Settle updates the memory from the observations of the tree. The error wraps state.ErrBusy if a lock is not
	// available; the rest is added later.
	Settle(context.Context, *state.Tree) (MemoryResult, error)
	// Compact shortens issues without recent additions.
	Compact(context.Context) (MemoryResult, error)
	// Anchor records the current content digests of an observation's files.
	Anchor(*schemas.ObservationSpec)
	// Save persists cached facts about files for later processes. It is called before the tree is marked as settled, so
	// that a run with work to do removes the leftover files of a process that is killed during Save.
	Save()
	// DrainEvents returns the events since the last call.
	DrainEvents() []settle.Event
}

// MemoryResult is the outcome of a change of the memory.
type MemoryResult struct {
	// Edited are the observations whose specs differ from the stored version, with the digest of that version.
	Edited map[string]string
	// Events report the changes, and notes for the user.
	Events []settle.Event
	// Wrote counts the written files in the memory's folder, also before an error.
	Wrote int
}

// compactEvery is the interval between checks for compaction, and at least once in it the memory is settled.
const compactEvery = 24 * time.Hour

// trustMemory takes the memory as it was when the tree was settled last, unless a compaction is due. Later changes must be touched afterwards.
func (s *run) trustMemory(was *state.Summary) {
	if now := s.loop.Now(); !was.Compacted.IsZero() && !was.Compacted.After(now) && now.Before(was.Compacted.Add(compactEvery)) {
		s.memoryState, s.compacted = memorySettled, was.Compacted
	}
}

// hasMemory reports whether there is a memory.
func (s *run) hasMemory() bool {
	on := s.tree.Settings().Memory.Enabled
	return s.loop.Memory != nil && (on == nil || *on)
}

// settleMemory updates the memory from the observations, before effects start that recall it. A busy lock blocks
// nothing: it is retried at the end of the run, when last is true.
func (s *run) settleMemory(ctx context.Context, last bool) error {
	if s.loop.Memory == nil {
		return nil
	}
	s.recordEvents(s.loop.Memory.DrainEvents())
	if s.memoryState == memorySettled || s.memoryState == memoryBusy && !last || !s.hasMemory() {
		return nil
	}
	if dormant, _ := s.tree.CountDormant(schemas.ObservationKind.Name); dormant+len(s.tree.Active(schemas.ObservationKind.Name)) == 0 && !s.loop.Store.HasMemory() {
		s.memoryState = memorySettled
		return nil
	}
	if !s.memorySwept {
		if err := s.loop.Store.SweepMemory(ctx); err != nil {
			return err
		}
		s.memorySwept = true
	}
	for range settleTries {
		done, err := s.loop.Memory.Settle(ctx, s.tree)
		if errors.Is(err, state.ErrBusy) {
			s.memoryState = memoryBusy
			return s.noteMemory(done)
		}
		if err != nil {
			return fmt.Errorf("bring the memory in step with the tree: %w", err)
		}
		s.memoryState = memorySettled
		s.acceptEdited(done.Edited)
		if err := s.noteMemoryWrites(done); err != nil || s.memoryState == memorySettled {
			return err
		}
	}
	return nil
}

// settleTries bounds how often a turn reads the memory again because it was written meanwhile. The next turn handles
// the rest.
const settleTries = 10

// memoryState relates the memory to the tree.
type memoryState int

const (
	memoryStale memoryState = iota // observations or the memory's files changed, or may have before this run
	memoryBusy                     // like memoryStale, and a lock was not available
	memorySettled
)

// noteMemoryWrites records a change of the memory. The next refresh does not report concurrent writes of other
// processes, so the memory must be read again.
func (s *run) noteMemoryWrites(done MemoryResult) error {
	if done.Wrote > 0 {
		s.memoryState = memoryStale
	}
	return s.noteMemory(done)
}

// noteMemory records a change of the memory, complete or not.
func (s *run) noteMemory(done MemoryResult) error {
	s.recordEvents(done.Events)
	if done.Wrote == 0 {
		return nil
	}
	s.wrote += done.Wrote
	s.changedAt = s.loop.Now()
	return s.loop.Store.RefreshMemory()
}

// memoryPending reports whether a captured observation is missing in the memory because a lock is not available.
func (s *run) memoryPending() bool { return s.hasMemory() && s.memoryState != memorySettled }

// acceptEdited notes which observations were edited after the memory stored them, and decides on them.
func (s *run) acceptEdited(edited map[string]string) {
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

// compactMemory shortens issues without recent additions, once in a run and once a day.
func (s *run) compactMemory(ctx context.Context) error {
	if !s.hasMemory() || !s.autoCompacts() || !s.compacted.IsZero() && !s.compactionDue() {
		return nil
	}
	s.compacted = s.loop.Now()
	if s.memoryState != memorySettled {
		return nil
	}
	done, err := s.loop.Memory.Compact(ctx)
	if errors.Is(err, state.ErrBusy) {
		s.memoryState = memoryBusy // recorded, but not yet in the files
		return s.noteMemory(done)
	}
	if err != nil {
		return fmt.Errorf("compact the memory: %w", err)
	}
	if err := s.noteMemoryWrites(done); err != nil {
		return err
	}
	return s.settleMemory(ctx, true)
}

// autoCompacts reports whether there is a memory with automatic compaction.
func (s *run) autoCompacts() bool {
	after := s.tree.Settings().Memory.CompactAfterDays
	return (after == nil || *after > 0) && s.loop.Store.HasMemory()
}

// nextCompaction is the time of the next check for compaction; zero: never.
func (s *run) nextCompaction() time.Time {
	if s.compacted.IsZero() || !s.hasMemory() || !s.autoCompacts() {
		return time.Time{}
	}
	return s.compacted.Add(compactEvery)
}

// compactionDue reports whether a check for compaction is due.
func (s *run) compactionDue() bool {
	at := s.nextCompaction()
	return !at.IsZero() && !s.loop.Now().Before(at)
}

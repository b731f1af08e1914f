package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/state"
)

// archive moves specs that have taken effect out of specs/. No decision depends on where a spec is stored.
func (s *run) archive(ctx context.Context) error {
	s.archiveAt = time.Time{}
	if s.loop.Archivable == nil {
		s.restingDue = time.Time{}
		return nil
	}
	if s.busy() || s.memoryPending() {
		return nil
	}
	now := s.loop.Now()
	all := !s.dormantDue.IsZero() && !now.Before(s.dormantDue) // a watcher lives on when the time of a dormant object comes
	moves, next := controllers.Archivable(s.tree, now, all)
	switch {
	case all:
		s.dormantDue = next
	case s.tree.LeavesDormant():
		next = spans.Sooner(next, s.dormantDue)
	}
	s.restingDue = next
	if s.archiveAt = next; len(moves) == 0 {
		return nil
	}
	s.stay = map[string]bool{}
	paths := make([]string, len(moves))
	for i, m := range moves {
		paths[i] = m.From
	}
	movable, err := s.loop.Archivable(ctx, paths)
	if err != nil {
		return fmt.Errorf("look which specs may go to the archive: %w", err)
	}
	slices.Sort(movable)
	moves = slices.DeleteFunc(moves, func(m state.Move) bool {
		_, ok := slices.BinarySearch(movable, m.From)
		s.stay[m.From] = !ok
		return !ok
	})
	if len(moves) < len(paths) {
		s.archiveAt = now // a commit changes no file of the tree: the next run asks git again
		if all {
			s.dormantDue, s.restingDue = now, now // also about those that stay dormant
		}
	}
	done, err := s.loop.Store.Archive(ctx, moves)
	if len(done) > 0 {
		s.wrote += len(done)
		s.changedAt = s.loop.Now()
		var hints []string
		for _, m := range done {
			hints = append(hints, m.From, m.To)
		}
		if err := s.refresh(ctx, hints); err != nil {
			return err
		}
		s.decide()
		return errors.Join(err, s.settleMemory(ctx, true)) // captures that moved are scanned again
	}
	return err
}

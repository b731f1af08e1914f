package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// archive moves specs that have had their effect out of specs/. Nothing that is decided depends on where they are.
func (s *session) archive(ctx context.Context) error {
	s.archiveAt = time.Time{}
	if s.Movable == nil || s.busy() || s.forgets() {
		return nil
	}
	moves, next := controllers.Archivable(s.tree, s.Now())
	if s.archiveAt = next; len(moves) == 0 {
		return nil
	}
	paths := make([]string, len(moves))
	for i, m := range moves {
		paths[i] = m.From
	}
	movable, err := s.Movable(ctx, paths)
	if err != nil {
		return fmt.Errorf("look which specs may go to the archive: %w", err)
	}
	slices.Sort(movable)
	moves = slices.DeleteFunc(moves, func(m state.Move) bool {
		_, ok := slices.BinarySearch(movable, m.From)
		return !ok
	})
	done, err := s.Store.Archive(ctx, moves)
	if len(done) > 0 {
		s.wrote += len(done)
		s.changedAt = s.Now()
		var hints []string
		for _, m := range done {
			hints = append(hints, m.From, m.To)
		}
		if err := s.refresh(ctx, hints); err != nil {
			return err
		}
		s.decide()
		return errors.Join(err, s.settleMemory(ctx, true)) // it looks again at captures that moved
	}
	return err
}

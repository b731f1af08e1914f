package indexing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/state"
)

// Session is an updated index in use. A new index searches by words only until it is finished.
type Session struct {
	*index.Kept
	options Options
	keeper  *index.Keeper
	tree    *state.Tree
}

// Open refreshes the keeper's index to an open tree, and returns it as a Session. The caller finishes or closes the
// session.
func Open(ctx context.Context, o Options, k *index.Keeper, t *state.Tree) (*Session, error) {
	x, err := k.Refresh(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Session{x, o, k, t}, nil
}

// Repair rebuilds the index. damage is the error that was found in it. Large sections are verified against their
// checksums as they are read.
func (s *Session) Repair(ctx context.Context, damage error) error {
	x, err := s.keeper.Repair(ctx, s.tree, damage)
	if err != nil {
		return errors.Join(damage, err)
	}
	s.Close()
	s.Kept = x
	return nil
}

// Complete reports whether [Session.Finish] has nothing left to do.
func (s *Session) Complete() bool { return s.Kept.Finish == nil }

// Finish finishes a session whose index is not complete: it builds the rest of it, and closes the session.
func (s *Session) Finish(ctx context.Context) error {
	defer func() { s.Close() }()
	if s.Complete() {
		return nil
	}
	s.options.Note(fmt.Sprintf("the index is built (%s); until then, search goes by words only", s.How.Rebuilt))
	whole, err := s.Kept.Finish(ctx)
	if _, written := errors.AsType[*fs.PathError](err); written {
		s.options.Warn(fmt.Errorf("the index could not be kept, and is built again next time: %w", err))
		return nil // the query was answered already
	}
	if err != nil {
		return err
	}
	s.Close()
	s.Kept = whole
	Ignore(s.options, s.keeper)
	return nil
}

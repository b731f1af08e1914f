package indexing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/state"
)

// Session is an index in use, which was brought up to date. A new one answers by words only, until it is finished.
type Session struct {
	*index.Kept
	options Options
	keeper  *index.Keeper
	tree    *state.Tree
}

// Open brings the index of an open tree up to date. The caller finishes or closes the session.
func Open(ctx context.Context, o Options, k *index.Keeper, t *state.Tree) (*Session, error) {
	x, err := k.Refresh(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Session{x, o, k, t}, nil
}

// Repair builds the index again. damage is what somebody found wrong with it: what is large is compared with its sums as it is
// read.
func (s *Session) Repair(ctx context.Context, damage error) error {
	x, err := s.keeper.Repair(ctx, s.tree, damage)
	if err != nil {
		return errors.Join(damage, err)
	}
	s.Close()
	s.Kept = x
	return nil
}

// Whole reports whether nothing is left to [Session.Finish].
func (s *Session) Whole() bool { return s.Kept.Finish == nil }

// Finish makes what a new index still lacks, and closes the session.
func (s *Session) Finish(ctx context.Context) error {
	defer func() { s.Close() }()
	if s.Whole() {
		return nil
	}
	s.options.Note(fmt.Sprintf("the index is built (%s); until then, search goes by words only", s.How.Rebuilt))
	whole, err := s.Kept.Finish(ctx)
	if _, written := errors.AsType[*fs.PathError](err); written {
		s.options.Warn(fmt.Errorf("the index could not be kept, and is built again next time: %w", err))
		return nil // what was asked for was answered
	}
	if err != nil {
		return err
	}
	s.Close()
	s.Kept = whole
	Ignore(s.options, s.keeper)
	return nil
}

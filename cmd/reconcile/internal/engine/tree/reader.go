package tree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// Reader reads a tree with statuses that include the journals of running processes. It takes no lock and changes
// nothing.
type Reader struct {
	Now func() time.Time

	current *state.Tree // the last result of Load or Refresh,
	files   *state.Tree // and the same without journals
}

// Load opens the store of the config's tree, and loads the tree with the journals of running processes. The reader can
// refresh it.
func (c Config) Load(ctx context.Context) (*state.Store, *state.Tree, Reader, error) {
	r := Reader{Now: c.Now}
	s, err := c.Open()
	if err != nil {
		return nil, nil, r, err
	}
	t, err := r.Load(ctx, s)
	if err != nil {
		return nil, nil, r, errors.Join(err, s.Close())
	}
	return s, t, r, nil
}

// Load reads the whole tree.
func (r *Reader) Load(ctx context.Context, s *state.Store) (*state.Tree, error) {
	t, err := s.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tree in %s: %w", s.Dir(), err)
	}
	return r.withJournals(s, t), nil
}

// Refresh refreshes a tree that the reader has loaded, from the files that hints name, or from all, with the journals.
func (r *Reader) Refresh(ctx context.Context, s *state.Store, t *state.Tree, hints []string) (*state.Tree, error) {
	if t == r.current {
		t = r.files
	}
	next, changed, err := s.Refresh(ctx, t, hints)
	switch {
	case err != nil:
		return nil, err
	case t == r.files && len(changed) == 0:
		return r.current, nil
	}
	return r.withJournals(s, next), nil
}

// withJournals adds the journals of running processes to a tree that was read from its files.
func (r *Reader) withJournals(s *state.Store, t *state.Tree) *state.Tree {
	r.files, r.current = t, controllers.Current(t, r.Now(), s.Journaled())
	return r.current
}

// Package tree opens trees: the store of a directory, the journals of running processes, and the tree of a commit.
package tree

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Config has the process's parameters for opening a tree.
type Config struct {
	Dir    string              // of the tree
	Now    func() time.Time    // the clock of the records
	Getenv func(string) string // the environment
	Log    *slog.Logger        // nil: nothing is logged
	// Collector is prepared for the trees that are loaded; nil: the garbage collector is not tuned.
	Collector *process.Collector
	Kinds     settle.Table // nil: controllers.Kinds
	// NoInputs is that of [state.Options].
	NoInputs bool
}

// Table returns the config's table of kinds for reading the tree, by default controllers.Kinds.
func (c Config) Table() settle.Table {
	if c.Kinds == nil {
		return controllers.Kinds
	}
	return c.Kinds
}

// Open opens the state.Store of the tree in the Dir of the config, without reading the tree.
func (c Config) Open() (*state.Store, error) {
	s, err := state.Open(c.Dir, c.StoreOptions())
	if err != nil {
		return nil, fmt.Errorf("open the tree in %s: %w", c.Dir, err)
	}
	return s, nil
}

// StoreOptions are the options of every store on the tree.
func (c Config) StoreOptions() state.Options {
	return state.Options{
		Kinds: c.Table().Schemas(), Now: c.Now, FileNow: time.Now, Agent: "reconcile", Build: process.BuildIdentity(),
		Large: c.Collector.Load, NoInputs: c.NoInputs,
		Log: c.Log, Cleaner: newCleaner(c.Dir),
	}
}

// cleaner knows the clean filters of the repository of a directory. It opens the repository for the first file, and again
// after each call of Rules.
type cleaner struct {
	dir string

	mu   sync.Mutex
	open func() *gitrepo.Conversions // once
}

func newCleaner(dir string) *cleaner {
	c := &cleaner{dir: dir}
	c.reset()
	return c
}

// reset makes the next file open the repository.
func (c *cleaner) reset() {
	c.open = sync.OnceValue(func() *gitrepo.Conversions { return conversions(c.dir) })
}

// Filter implements [state.Cleaner].
func (c *cleaner) Filter(path string) func([]byte) []byte {
	c.mu.Lock()
	open := c.open
	c.mu.Unlock()
	if known := open(); known != nil {
		return known.Stored(path)
	}
	return nil
}

// Rules implements [state.Cleaner].
func (c *cleaner) Rules() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset()
	return gitrepo.ConversionSources(c.dir)
}

// conversions returns those of the repository of dir; nil if it has no readable one.
func conversions(dir string) *gitrepo.Conversions {
	repo, err := gitrepo.Open(dir)
	if err != nil {
		return nil
	}
	c, err := repo.Conversions(context.Background())
	if err != nil {
		return nil
	}
	return c
}

// Reader reads a tree with statuses that include the journals of running processes. It takes no lock and changes
// nothing.
type Reader struct {
	Now func() time.Time
	// Changed are the objects that differ from the tree as it was settled, or depend on a difference; nil if that is not known.
	Changed []schemas.Ref

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

// LoadChanged is Load for a caller that decides: what rests may not be loaded, and the reader says what changed since the tree was settled.
func (c Config) LoadChanged(ctx context.Context) (*state.Store, *state.Tree, Reader, error) {
	r := Reader{Now: c.Now}
	s, err := c.Open()
	if err != nil {
		return nil, nil, r, err
	}
	s.Fresh() // scans what LoadChanged compares
	t, changed, was, err := s.LoadChanged(ctx, true)
	if err != nil {
		return nil, nil, r, errors.Join(fmt.Errorf("read the tree in %s: %w", s.Dir(), err), s.Close())
	}
	if was != nil {
		r.Changed = append([]schemas.Ref{}, changed...)
	}
	return s, r.withJournals(s, t), r, nil
}

// Load reads the tree. What rests is loaded when it is asked for.
func (r *Reader) Load(ctx context.Context, s *state.Store) (*state.Tree, error) {
	t, err := s.LoadLazily(ctx)
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
	case next.Settings() != t.Settings():
		r.Changed = nil
	case r.Changed != nil:
		r.Changed = append(r.Changed, changed...)
	}
	return r.withJournals(s, next), nil
}

// withJournals adds the journals of running processes to a tree that was read from its files.
func (r *Reader) withJournals(s *state.Store, t *state.Tree) *state.Tree {
	journaled := s.Journaled()
	if r.Changed != nil {
		r.Changed = append(r.Changed, journaled...)
	}
	r.files, r.current = t, controllers.Current(t, r.Now(), journaled)
	return r.current
}

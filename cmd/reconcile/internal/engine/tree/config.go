// Package tree opens trees: the store of a directory, the journals of running processes, and the tree of a commit.
package tree

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
)

// Config has the process's parameters for opening a tree.
type Config struct {
	Dir    string              // of the tree
	Now    func() time.Time    // the clock of the records
	Getenv func(string) string // the environment
	Log    *slog.Logger        // nil: nothing is logged
	Kinds  settle.Table        // nil: controllers.Kinds
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
		Large: func(files int) { process.SaveMemory(c.Getenv, files, files > state.LargeTree) },
		Log:   c.Log, Cleaner: newCleaner(c.Dir),
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

// Within reports whether a slash path p is within the folder dir: dir itself, or a path below it.
func Within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

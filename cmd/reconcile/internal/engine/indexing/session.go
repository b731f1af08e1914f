// Package indexing maintains the index of a tree: for a command that searches, and during a watching run.
package indexing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas/treepath"
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

// Options configure the maintenance of an index.
type Options struct {
	Tree tree.Config
	// Warn is called with missing parts of the index, which do not stop the work.
	Warn func(error)
	// Note is called with notes for the user.
	Note func(text string)
	// Progress is called with the progress of a build; may be nil.
	Progress func(step string, done, total int)
}

// NewKeeper returns an index.Keeper for the index of an open tree, with git's ignore rules and the embedder that the
// policy allows. denied says why the endpoint for vectors is not allowed; otherwise nil.
func NewKeeper(ctx context.Context, o Options, s *state.Store, t *state.Tree) (k *index.Keeper, denied, err error) {
	k = &index.Keeper{
		Store: s, Now: o.Tree.Now, Warn: warnOnce(o.Warn), Progress: o.Progress,
		Ignored: func(string, bool) func(string, bool) bool {
			return func(name string, _ bool) bool { return treepath.OfName(name) == treepath.Git }
		},
	}
	if r, err := gitrepo.Open(o.Tree.Dir); err == nil {
		ignores, err := r.Ignores(ctx)
		if err != nil {
			return nil, nil, err
		}
		k.Ignored = ignores.Folder
	}
	policy := egress.Policy{Getenv: o.Tree.Getenv}
	k.Embedder, denied, err = policy.Embedder(s.Root(), t.Settings().Index, o.Warn)
	return k, denied, err
}

// warnOnce returns a warn function that warns of each error once. An index is first built from words, and then with
// vectors, and both may report the same error.
func warnOnce(warn func(error)) func(error) {
	var said sync.Map
	return func(err error) {
		if _, again := said.LoadOrStore(err.Error(), true); !again {
			warn(err)
		}
	}
}

// Ignore adds a new index to the folder's .gitignore, or notes the line to add if the folder has one already.
func Ignore(o Options, k *index.Keeper) {
	dir, name := path.Split(index.SnapshotPath)
	if _, err := gitrepo.Open(o.Tree.Dir); err != nil || k.Ignored(path.Clean(dir), true)(name, false) {
		return
	}
	if wrote, err := k.Store.Ignore(path.Clean(dir), "*.snapshot"); err != nil || !wrote {
		o.Note(fmt.Sprintf("%s is derived, and git does not ignore it: add the line %s to .gitignore", index.SnapshotPath, IgnoreLine))
	}
}

// IgnoreLine is the line of .gitignore that excludes the index from git.
const IgnoreLine = "/vectors/*.snapshot"

// Examine opens the index of a keeper, and describes its nodes and the model of its vectors, or returns why it is
// unusable.
func Examine(k *index.Keeper, t *state.Tree) (string, error) {
	x, err := k.Open(t)
	if err != nil {
		return "", err
	}
	defer x.Close()
	model := x.Stored.Meta().Model
	if model == "" {
		model = "nothing"
	}
	return fmt.Sprintf("%s, vectors by %s", render.GroupedPlural(x.Graph().Nodes(), "node"), model), x.Verify()
}

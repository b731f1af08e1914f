// Package commits commits the files that reconcile wrote to git.
package commits

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/ownership"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Options configure a Committer.
type Options struct {
	Dir   string // of the tree
	Store *state.Store
	Now   func() time.Time
	Warn  func(text string)
}

// Request says what the user asked for; the settings may ask for more.
type Request struct {
	Commit, Push bool
}

// Shared is a branch that several reconcilers work on.
type Shared interface {
	// Public returns the paths without those that must not leave this clone yet. private reports whether there are any.
	Public(ctx context.Context, t *state.Tree, paths []string) (public []string, private bool, err error)
	// MovedTo records the commit that the branch is at.
	MovedTo(commit string) (moved bool)
}

// Committer commits the files that reconcile wrote: everything that it owns in the state folder, and the specs of its
// commands. It commits all differences from the branch, so a run also commits what a killed run wrote.
type Committer struct {
	Git    *gitrepo.Repo
	Shared Shared // nil: the branch is not shared

	o Options
}

// NoRepositoryError says that a commit or push was requested without a git repository.
type NoRepositoryError struct {
	Request Request // what the user asked for
	Setting string  // the setting that asks for it, if the user did not
	Err     error
}

func (e *NoRepositoryError) Error() string {
	if e.Request == (Request{}) {
		return fmt.Sprintf("%s says %s: true: %v, or set %[2]s to false; nothing was run", schemas.SettingsPath, e.Setting, e.Err)
	}
	return fmt.Sprintf("commit: %v; nothing was run", e.Err)
}

func (e *NoRepositoryError) Unwrap() error { return e.Err }

// Open opens the repository to commit to, before a run does anything else. It returns nil if no commit is
// requested.
func Open(o Options, r Request) (*Committer, error) {
	s := o.Store.Settings()
	if !r.Commit && !r.Push && !s.Git.Commit && !s.Git.Push {
		return nil, nil
	}
	repo, err := gitrepo.OpenToCommit(o.Dir)
	switch {
	case errors.Is(err, gitrepo.ErrNotARepo):
		setting := "git.commit"
		if !s.Git.Commit {
			setting = "git.push"
		}
		return nil, &NoRepositoryError{Request: r, Setting: setting, Err: err}
	case err != nil:
		return nil, fmt.Errorf("open the repository to commit to: %w", err)
	}
	if err := repo.Storable(context.Background(), s.Folders.State+"/any.json"); err != nil {
		return nil, fmt.Errorf("commit: %w; nothing was run", err)
	}
	return New(o, repo), nil
}

// New returns a Committer with options to an open gitrepo.Repo.
func New(o Options, repo *gitrepo.Repo) *Committer { return &Committer{Git: repo, o: o} }

// Commit commits the program's own files of the tree in a scope to the branch: those that it has written and are
// settled. If the memory is incomplete, a commit would contain an observation without its effects; then neither is
// included.
func (c *Committer) Commit(ctx context.Context, t *state.Tree, scope loop.Scope) (loop.Committed, error) {
	settings := t.Settings()
	branch := settings.Git.Branch
	if c.Shared != nil {
		branch = "" // the checked out branch
	}
	folders := append(ownership.Written(c.o.Store.Kinds(), settings), settings.Folders.Specs)
	if scope.MemorySettled {
		folders = append(folders, c.o.Store.MemoryDir())
	}
	dirty, err := c.Git.DirtyListed(ctx, branch, folders, c.listed())
	if err != nil {
		return loop.Committed{}, errors.Join(err, c.Git.Settle(ctx))
	}
	specs, left := ownership.SpecsAt(c.o.Store, t, dirty), ownership.Unsettled(t, scope.Open)
	notOurs := func(p string) bool {
		return strings.HasPrefix(p, settings.Folders.Specs+"/") && !specs.Has(p, scope.MemorySettled)
	}
	paths := slices.DeleteFunc(slices.Clone(dirty), func(p string) bool {
		return notOurs(p) || left(p) || ownership.ByHand(settings, p) || specs.OfUser(p) && !c.uncommitted(ctx, specs.Once(p)) ||
			specs.Made(p) && c.known(ctx, p, func([]byte) bool { return true })
	})
	moved, err := Archived(ctx, c.Git, c.o.Store, t, dirty)
	paths = append(paths, moved...)
	private := false
	if c.Shared != nil && err == nil {
		paths, private, err = c.Shared.Public(ctx, t, paths)
	}
	if err != nil || len(paths) == 0 {
		return loop.Committed{Incomplete: private}, errors.Join(err, c.Git.Settle(ctx))
	}
	head, err := c.Git.Head(ctx)
	if err != nil {
		return loop.Committed{}, err
	}
	res, err := c.Git.Commit(ctx, gitrepo.Commit{
		Paths: paths, Author: settings.Git.Author, Sign: settings.Git.Sign, When: c.o.Now(), Branch: branch,
		Message: message.New(changesOf(paths, settings.Folders.State, t), trailers(head)...),
	})
	if errors.Is(err, gitrepo.ErrNothing) {
		return loop.Committed{Incomplete: private}, nil
	}
	if res.Warning != "" {
		c.o.Warn(res.Warning)
	}
	if c.Shared != nil && err == nil {
		c.Shared.MovedTo(res.Hash)
	}
	return loop.Committed{Hash: res.Hash, Incomplete: private || res.Warning != ""}, err
}

// listed returns the folders that the run has read, for a branch that no one else checks files out of meanwhile.
func (c *Committer) listed() gitrepo.Lister {
	if l := c.o.Store.Listing(); l != nil && c.Shared == nil {
		return l.Folder
	}
	return nil
}

// uncommitted reports whether the branch lacks the current version of an object that takes effect once. nil counts as
// committed.
func (c *Committer) uncommitted(ctx context.Context, o *schemas.Object) bool {
	if o == nil {
		return false
	}
	same := func(data []byte) bool {
		is := schemas.NewDecoder(c.o.Store.Kinds(), 0).Decode(o.Path, data).Object
		return is != nil && is.Digest == o.Digest
	}
	data, err := regular.Read(c.o.Store.Root(), o.Path)
	if err != nil || !same(data) {
		return false
	}
	return !c.known(ctx, o.Path, same)
}

// known reports whether the branch has a file that is as asked, or cannot be asked.
func (c *Committer) known(ctx context.Context, p string, is func(data []byte) bool) (known bool) {
	head, err := c.Git.Head(ctx)
	if err != nil || head.Hash == "" {
		return err != nil
	}
	err = c.Git.Files(ctx, head.Hash, []string{p}, func(f gitrepo.Stored) error {
		known = is(f.Data)
		return nil
	})
	return err != nil || known
}

// trailers record the input: the commit that the tree was based on.
func trailers(h gitrepo.Head) []message.Trailer {
	if h.Hash == "" {
		return nil
	}
	return []message.Trailer{{Key: "Reconcile-Input", Value: h.Hash}}
}

// changesOf lists the objects that the paths belong to, each once, in the order of the paths, followed by facts. A
// record belongs to its owner.
func changesOf(paths []string, dir string, t *state.Tree) []message.Change {
	var out []message.Change
	seen := map[string]bool{}
	for _, p := range paths {
		ref, ok := ownership.Subject(t, strings.TrimPrefix(p, dir+"/"))
		if !ok || seen[ref.String()] {
			continue
		}
		seen[ref.String()] = true
		gone := ref.Kind != state.MemoryKind && !t.Exists(ref)
		out = append(out, message.Change{Object: ref.String(), Note: noteOf(t, ref), Gone: gone})
	}
	return append(out, factsOf(paths, dir)...)
}

// factsOf lists the facts that the paths state or retract.
func factsOf(paths []string, dir string) []message.Change {
	ids, stated := index.FactsIn(slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return path.Dir(p) != state.FactsDir(dir)
	}))
	var out []message.Change
	for _, id := range ids {
		out = append(out, message.Change{Object: "fact/" + id, Fact: true, Gone: !stated[id]})
	}
	return out
}

// noteOf summarizes the progress of an object in a few words, or "".
func noteOf(t *state.Tree, ref schemas.Ref) string {
	k := settle.RowOf(t, ref.Kind)
	if k == nil || k.Note == nil {
		return ""
	}
	if st := t.StatusOf(ref); st != nil {
		return k.Note(st)
	}
	return ""
}

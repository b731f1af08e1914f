package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/worktree"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrNotARepo reports that the directory is not in a git work tree.
	ErrNotARepo = worktree.ErrNone
	// ErrNothing reports that the branch already holds exactly these files. Most callers treat it as success.
	ErrNothing = errors.New("nothing to commit")
	// ErrBusy reports that another process holds a needed resource (a lock file, a rebase in progress): try again
	// later.
	ErrBusy = errors.New("the repository is busy")
	// errUnsupported reports that only the git command supports this repository, and that it is not available.
	errUnsupported = errors.New("this kind of repository needs the git command, which is not on the PATH")
)

// Commit describes a commit to make.
type Commit struct {
	// Paths are slash paths below the directory given to Open: files that exist are added, others removed.
	Paths   []string
	Message string
	// Author is "Name <mail>"; empty: GIT_AUTHOR_*, git's configuration, else reconcile.
	Author string
	// Sign is "always", "never" or "auto" (also ""), which follows commit.gpgSign.
	Sign string
	When time.Time
	// Branch is the short name of the branch to commit to; empty: the checked-out branch. Another branch is moved
	// without touching the work tree or the index; a new one starts at HEAD.
	Branch string
}

// Result is the result of a commit.
type Result struct {
	// Hash is the new commit; with ErrNothing the commit that already holds the files.
	Hash string
	// Warning is empty, or reports that the commit was made but the index has yet to follow, and why.
	Warning string
}

// Head is where HEAD points.
type Head struct {
	Ref  string // "refs/heads/main"; empty when detached
	Hash string // empty on a branch without commits
}

// Branch is the short name of the branch, or "" when HEAD is detached.
func (h Head) Branch() string { return strings.TrimPrefix(h.Ref, "refs/heads/") }

// committer is the interface of the two backends: native, and the git command. Paths are slash paths below the work
// tree.
type committer interface {
	head(ctx context.Context) (Head, error)
	commit(ctx context.Context, c Commit) (Result, error)
	dirty(ctx context.Context, branch string, prefixes []string, listed Lister) ([]string, error)
	settle(ctx context.Context) error
}

// Repo is the git repository that contains a tree. It holds no lock and no open file between calls, and its methods
// are safe for concurrent use.
type Repo struct {
	layout
	objects folderID // of the folder of its objects: another repository at the same place has another one
	prefix  string   // slash path of the tree below the work tree, with a final slash; or ""
	native  committer
	command committer // nil without a git command
	why     error     // why native does not support this repository, or nil
}

// layout holds the absolute paths of a repository's parts.
type layout struct {
	worktree string
	gitDir   string // HEAD and index of this work tree
	common   string // objects, refs, configuration; equals gitDir except in linked work trees
	recent   *recent
}

// Open opens the repository, read-only, whose work tree contains dir. It opens no object and reads no configuration
// beyond the repository's format. The Repo runs no program that the repository's configuration names: it is for
// readers.
func Open(dir string) (*Repo, error) { return open(dir, readOnly, nil) }

// OpenToCommit opens the repository around dir with the programs that commits and pushes need: filters, the signing
// program and transport programs run as in git.
func OpenToCommit(dir string) (*Repo, error) { return open(dir, withPrograms, nil) }

// ReopenToCommit is OpenToCommit. If it opens the repository that last is, it does not read again what was read there and has not
// changed. last may be nil.
func ReopenToCommit(dir string, last *Repo) (*Repo, error) { return open(dir, withPrograms, last) }

func open(dir string, m programMode, last *Repo) (*Repo, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, err
	}
	if err := worktree.Blocked(abs); err != nil {
		return nil, err
	}
	found, err := worktree.Find(abs)
	if err != nil {
		return nil, err
	}
	l := layout{worktree: found.Top, gitDir: found.GitDir, common: found.Common, recent: new(recent)}
	objects, err := identify(filepath.Join(l.common, "objects"))
	if err != nil {
		return nil, err
	}
	if last != nil && last.common == l.common && last.gitDir == l.gitDir && objects.is(last.objects) {
		l.recent = last.recent
	}
	rel, err := filepath.Rel(l.worktree, abs)
	if err != nil {
		return nil, err
	}
	r := &Repo{layout: l, objects: objects}
	if rel != "." {
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	n := newNative(l, m)
	n.scratch = r.prefix + n.scratch
	r.native = n
	if git, err := exec.LookPath("git"); err == nil {
		r.command = &command{layout: l, git: git, mode: m, lockTimeout: lockTimeout}
		n.git = git
	}
	r.why = n.supported()
	var no *noFallback
	if errors.As(r.why, &no) {
		return nil, r.why
	}
	if r.why != nil && r.command == nil {
		return nil, fmt.Errorf("%s: %w: %w", l.common, errUnsupported, r.why)
	}
	return r, nil
}

// Head returns HEAD. An unreadable HEAD or branch is an error, never an empty branch.
func (r *Repo) Head(ctx context.Context) (Head, error) {
	var h Head
	err := r.do(func(c committer) (err error) {
		h, err = c.head(ctx)
		return err
	})
	return h, err
}

// Commit commits exactly c.Paths, as the package comment describes, and returns when the commit is durable. The
// error is ErrNothing if nothing changed, and wraps ErrBusy if a later call may succeed. After an error nothing has
// been committed, unless the result has a hash: then the disk failed when the commit was already visible.
func (r *Repo) Commit(ctx context.Context, c Commit) (Result, error) {
	paths, err := r.below(c.Paths)
	if err != nil {
		return Result{}, err
	}
	c.Paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var res Result
	err = r.do(func(b committer) (err error) {
		res, err = b.commit(ctx, c)
		return err
	})
	return res, err
}

// Settle sweeps the leftover files of a killed process from the git directory, and updates the index for its last
// commit. Commit does so first, too.
func (r *Repo) Settle(ctx context.Context) error {
	return r.do(func(c committer) error { return c.settle(ctx) })
}

// do runs f with the native backend, or with the git command where native returns needsGit.
func (r *Repo) do(f func(committer) error) error {
	if r.why == nil {
		err := f(r.native)
		var pass *needsGit
		if !errors.As(err, &pass) {
			return err
		}
		if r.command == nil {
			return fmt.Errorf("%s: %w: %w", r.worktree, errUnsupported, err)
		}
	}
	return f(r.command)
}

// below converts paths below the tree to paths below the work tree, and refuses those that leave it or enter .git.
func (r *Repo) below(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		full := r.prefix + strings.TrimSuffix(p, "/")
		switch treepath.Of(full) {
		case treepath.Outside:
			return nil, fmt.Errorf("%q: not a clean slash path below %s; nothing was committed", p, r.worktree)
		case treepath.Git:
			return nil, fmt.Errorf("%q: enters .git; nothing was committed", p)
		}
		out[i] = full
	}
	return out, nil
}

func orError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// checkWorktree refuses a repository whose configured work tree is not the folder around .git. In a linked work
// tree these settings apply to the main one.
func checkWorktree(l layout, cfg *config.Config) error {
	if l.gitDir != l.common {
		return nil
	}
	if bare, _ := strconv.ParseBool(cfg.Section("core").Option("bare")); bare {
		return &noFallback{fmt.Errorf("%s: %w: core.bare is true", l.gitDir, ErrNotARepo)}
	}
	top := cfg.Section("core").Option("worktree")
	if top == "" {
		return nil
	}
	dir, err := filepath.EvalSymlinks(worktree.Absolute(l.gitDir, top))
	if err == nil && dir != l.worktree {
		err = fmt.Errorf("%s: %w: core.worktree says that the work tree is %s", l.gitDir, ErrNotARepo, dir)
	}
	if err != nil {
		return &noFallback{err}
	}
	return nil
}

// parallel runs f(0…n-1), such as eight git commands or reads of objects at a time, and joins the errors.
func parallel(n int, f func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Shallow reports whether the repository is a shallow clone, whose history is cut off.
func (r *Repo) Shallow() bool { return worktree.Exists(filepath.Join(r.common, "shallow")) }

func orString(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

package ops

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// PreviewRequest asks what changes.
type PreviewRequest struct {
	// Paths are files and folders, relative to the caller's folder; none: all files of the work tree.
	Paths []string
	// Base is the commit, branch or tag to compare with; "": HEAD.
	Base string
	// Commit is the commit whose files are compared with those of Base; "": the files of the work tree.
	Commit string
	// Staged compares the index, not the files.
	Staged bool
	// Proposed, unless nil, are texts that the files of Paths would get, one for each. They need no repository.
	Proposed [][]byte
	// Raw leaves secrets in the diffs, and has the content of binary files, so that git apply takes them.
	Raw bool
}

// Preview describes what changes in the work tree, or what would change by proposed texts. It changes nothing.
func Preview(ctx context.Context, env Env, q PreviewRequest) (c *preview.Change, err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var files []preview.File
	switch {
	case q.Proposed == nil:
		files, err = env.changes(ctx, q)
	case q.Base != "" || q.Commit != "" || q.Staged:
		return nil, badRequest("a proposed text is compared with the file; leave out --base, --commit and --staged")
	case len(q.Proposed) != len(q.Paths):
		return nil, badRequest("%d proposed texts for %d paths; give one for each", len(q.Proposed), len(q.Paths))
	default:
		files, err = env.proposed(q)
	}
	if err != nil {
		return nil, err
	}
	c = preview.Of(files)
	if !q.Raw {
		for i := range c.Files {
			c.Files[i].Diff = secrets.Redact(c.Files[i].Diff)
		}
	}
	return c, nil
}

// proposed compares files with the texts that they would get.
func (e Env) proposed(q PreviewRequest) (files []preview.File, err error) {
	top := ""
	if abs, err := filepath.Abs(e.Tree.Dir); err == nil {
		if l, err := worktree.Find(abs); err == nil {
			top = l.Top
		}
	}
	for i, p := range q.Paths {
		was, err := sideOf(e.CallerPath(p))
		if errors.Is(err, fs.ErrNotExist) {
			was, err = preview.Side{}, nil
		}
		if err != nil {
			return nil, err
		}
		shown := filepath.ToSlash(filepath.Clean(p))
		if below, err := e.belowTop(top, p); err == nil && top != "" {
			shown = below
		}
		now := preview.Side{Text: q.Proposed[i], Mode: was.Mode}
		if now.Text == nil {
			now.Text = []byte{}
		}
		if f, differs := preview.Compare(strings.TrimPrefix(shown, "/"), was, now); differs {
			files = append(files, f)
		}
	}
	return files, nil
}

// largestShown is the size of the largest file whose lines are compared, in bytes.
const largestShown = 32 << 20

// sideOf reads a file of the disk. A link has its target as its text.
func sideOf(name string) (s preview.Side, err error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return s, err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(name)
		return preview.Side{Text: []byte(to), Mode: "120000"}, err
	}
	s.Text, err = regular.ReadPathUpTo(name, largestShown)
	if errors.Is(err, regular.ErrTooLarge) {
		s.Large, err = true, nil
	}
	if s.Text == nil {
		s.Text = []byte{}
	}
	if s.Mode = "100644"; fi.Mode()&0o111 != 0 {
		s.Mode = "100755"
	}
	return s, err
}

// changes compares the work tree, or the index, with a commit.
func (e Env) changes(ctx context.Context, q PreviewRequest) ([]preview.File, error) {
	r, err := gitrepo.Open(e.Tree.Dir)
	if err != nil {
		return nil, err
	}
	c := gitrepo.Comparison{Staged: q.Staged, Whole: q.Raw}
	if q.Base != "" {
		if c.From, err = r.Resolve(ctx, q.Base); err != nil {
			return nil, badRequest("--base: %v", err)
		}
	} else {
		h, err := r.Head(ctx)
		if err != nil {
			return nil, err
		}
		c.From = h.Hash
	}
	if q.Commit != "" {
		if q.Staged {
			return nil, badRequest("a commit has nothing staged; leave out --commit or --staged")
		}
		if c.To, err = r.Resolve(ctx, q.Commit); err != nil {
			return nil, badRequest("--commit: %v", err)
		}
	}
	for _, p := range q.Paths {
		below, err := e.belowTop(r.Worktree(), p)
		if err != nil {
			return nil, err
		}
		c.Paths = append(c.Paths, below)
	}
	diff, err := r.Diff(ctx, c)
	if err != nil {
		return nil, err
	}
	files := preview.Parse(string(diff))
	if q.Staged || q.Commit != "" {
		return files, nil
	}
	untracked, err := r.Untracked(ctx)
	for _, p := range untracked {
		if strings.HasSuffix(p, "/") || !isWithin(p, c.Paths) { // another repository
			continue
		}
		now, err := sideOf(filepath.Join(r.Worktree(), filepath.FromSlash(p)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f, _ := preview.Compare(p, preview.Side{}, now)
		files = append(files, f)
	}
	return files, err
}

// belowTop is the slash path of a caller's path below the top of the work tree. The file need not exist.
func (e Env) belowTop(top, p string) (string, error) {
	abs, err := filepath.Abs(e.CallerPath(p))
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	below, ok := worktree.Within(top, abs)
	if !ok {
		return "", badRequest("%s is outside of the work tree %s", p, top)
	}
	return below, nil
}

// isWithin reports whether a path is one of some files, or below one of some folders; none mean all.
func isWithin(p string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(in string) bool { return treepath.Below(p, in) })
}

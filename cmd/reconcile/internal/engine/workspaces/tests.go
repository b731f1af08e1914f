package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

// Tests that an agent writes of the commit of another one are a commit of their own, in new files. In the workspace of the other one they are
// there, and no part of its commits.

// commitTests commits the new files with tests of a checkout onto the commit that was checked out. Whatever else changed is left out, which the
// note says.
func (c *checkout) commitTests(ctx context.Context, at time.Time) (*schemas.RunWorkspace, error) {
	o := c.owner
	all, err := c.repo.Uncaptured(ctx, c.m.checkout(o.Name))
	if err != nil {
		return nil, fmt.Errorf("read the tests that were written: %w", err)
	}
	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return c.m.isNewTest(ctx, c.repo, o, name) })
	changed, err := c.m.checkSecrets(ctx, c.repo, o, left, nil)
	if err != nil {
		return nil, fmt.Errorf("the tests are not committed: %w", err)
	}
	left = append(left, slices.DeleteFunc(slices.Clone(changed), func(name string) bool { return slices.Contains(all, name) })...)
	got, err := c.repo.Capture(ctx, gitrepo.Capture{Checkout: c.m.checkout(o.Name), Base: o.Base, Except: left, Changed: changed, Author: author(o), When: at,
		Message: fmt.Sprintf("Test %s of %s\n\n%s%s\n", o.Node, o.Owner, runTrailer, o.Run)})
	if err != nil {
		return nil, fmt.Errorf("commit the tests: %w", err)
	}
	run := &schemas.RunWorkspace{Kind: o.Kind, Base: o.Base, Commit: got.Commit, Changed: len(got.Files), Files: got.Files[:min(len(got.Files), maxFiles)]}
	if slices.Sort(left); len(left) > 0 {
		run.Note = "left out what is no new file with tests: " + some(left)
	}
	if got.Commit == "" {
		return run, nil
	}
	if run.Tree, err = c.repo.TreeOf(ctx, got.Commit); err != nil {
		return nil, fmt.Errorf("read the commit of the tests: %w", err)
	}
	run.Branch = o.Branch
	c.look(ctx, run)
	return run, c.repo.SetRef(ctx, "refs/heads/"+o.Branch, got.Commit, at)
}

// isNewTest reports whether a file of a checkout has tests, and the commit that was checked out does not have it.
func (m *Manager) isNewTest(ctx context.Context, repo *gitrepo.Repo, o Owner, name string) bool {
	if below, ok := strings.CutPrefix(name, repo.Prefix()); !ok || treepath.Of(below) != treepath.User || !tools.IsAddedTest(name) {
		return false
	}
	fi, err := os.Lstat(filepath.Join(m.path(o.Name), filepath.FromSlash(name)))
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	_, err = repo.Blob(ctx, o.Base, name)
	return err != nil
}

// testFiles lists the files of tests that commit does not have, below the top.
func testFiles(ctx context.Context, repo *gitrepo.Repo, t *settle.Tests, commit string) ([]string, error) {
	if t == nil {
		return nil, nil
	}
	files, err := repo.ChangedFiles(ctx, t.Base, t.Commit)
	if err != nil {
		return nil, fmt.Errorf("read the tests of agent/%s: %w", t.Agent, err)
	}
	return slices.DeleteFunc(files, func(name string) bool {
		_, err := repo.Blob(ctx, commit, name)
		return err == nil
	}), nil
}

// placeTests writes the files of tests that commit does not have into a checkout.
func (m *Manager) placeTests(ctx context.Context, repo *gitrepo.Repo, name string, t *settle.Tests, commit string) error {
	files, err := testFiles(ctx, repo, t, commit)
	if err != nil || len(files) == 0 {
		return err
	}
	root, err := regular.Root(m.path(name))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range files {
		data, err := repo.Blob(ctx, t.Commit, file)
		if err != nil {
			return err
		}
		at := filepath.FromSlash(file)
		if err := root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := replaceBy(root, at, 0o644, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return fmt.Errorf("write the tests of agent/%s: %w", t.Agent, err)
		}
	}
	return nil
}

// bringTests has the tests in a workspace that an agent wrote of what is made there, in place of those that were there before.
func (w *workspace) bringTests(ctx context.Context, all []settle.Tests) (err error) {
	var now *settle.Tests
	if len(all) > 0 {
		now = &all[len(all)-1]
	}
	if err := w.dropTests(ctx); err != nil || now == nil {
		return err
	}
	if w.owner, err = w.m.change(w.owner.Name, tested(now)); err != nil {
		return err
	}
	return w.m.placeTests(ctx, w.repo, w.owner.Name, now, w.owner.Base)
}

// dropTests removes the tests of another agent from a workspace.
func (w *workspace) dropTests(ctx context.Context) error {
	files, err := testFiles(ctx, w.repo, w.owner.tests(), w.owner.Base)
	if err != nil || w.owner.Tests == "" {
		return err
	}
	root, err := regular.Root(w.Top())
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range files {
		if err := root.Remove(filepath.FromSlash(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w.owner, err = w.m.change(w.owner.Name, tested(nil))
	return err
}

// tampered says how an agent changed the tests of another one in its workspace, as far as they test less then, and which it changed at all.
func (w *workspace) tampered(ctx context.Context) (doubts, changed []string, err error) {
	t := w.owner.tests()
	names, err := testFiles(ctx, w.repo, t, w.owner.Base)
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	was, is := map[string][]byte{}, map[string][]byte{}
	var files []preview.File
	for _, name := range names {
		if was[name], err = w.repo.Blob(ctx, t.Commit, name); err != nil {
			return nil, nil, err
		}
		if data, err := contentOf(filepath.Join(w.Top(), filepath.FromSlash(name))); err == nil {
			is[name] = append([]byte{}, data...)
		}
		if f, differs := preview.Compare(name, preview.Side{Text: was[name]}, preview.Side{Text: is[name]}); differs {
			files, changed = append(files, f), append(changed, name)
		}
	}
	return tools.Doubts(files, func(file string, after bool) ([]byte, error) {
		if after {
			return is[file], nil
		}
		return was[file], nil
	}), changed, nil
}

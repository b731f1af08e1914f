package metering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// longestKey bounds a key, in bytes.
const longestKey = 16 << 10

// key reads a key; "" for no source. No error contains it.
func (m *Meter) key(ctx context.Context, from *schemas.KeySource) (string, error) {
	if from == nil {
		return "", nil
	}
	text, where := m.o.Getenv(from.Env), from.String()
	if from.File != "" {
		var err error
		if text, err = m.read(ctx, from.File); err != nil {
			return "", err
		}
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "" && from.Env != "":
		return "", fmt.Errorf("%s is not set; set it in the environment of reconcile", where)
	case text == "":
		return "", fmt.Errorf("%s is empty", where)
	case len(text) > longestKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s has more than a key: a key is one line of printable characters", where)
	}
	return text, nil
}

// read reads the file of a key, which no one else may read and git may not commit.
func (m *Meter) read(ctx context.Context, name string) (string, error) {
	file := filepath.FromSlash(name)
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s: there is no home folder", name)
		}
		file = filepath.Join(home, filepath.FromSlash(rest))
	} else if !filepath.IsAbs(file) {
		file = filepath.Join(m.o.Dir, file)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist", name)
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", name, regular.Cause(err))
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", name, regular.Cause(err))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others (mode %04o); run: chmod 600 %s", name, info.Mode().Perm(), name)
	case info.Size() > longestKey:
		return "", fmt.Errorf("%s is longer than a key", name)
	}
	if err := m.mayBeHere(ctx, name, real); err != nil {
		return "", err
	}
	data, err := regular.ReadPath(real)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", name, regular.Cause(err))
	}
	return string(data), nil
}

// mayBeHere returns why a file cannot hold a key: it is in the tree, or in its repository, and git does not ignore it.
func (m *Meter) mayBeHere(ctx context.Context, name, file string) error {
	root := m.o.Dir
	repo, err := gitrepo.OpenToCommit(m.o.Dir)
	if err == nil {
		root = repo.Worktree()
	} else if !errors.Is(err, gitrepo.ErrNotARepo) {
		return err
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return err
	}
	rel, below := worktree.Within(root, file)
	switch {
	case !below:
		return nil
	case repo == nil:
		return fmt.Errorf("%s is in the tree, where nothing keeps it from being published; move it out", name)
	}
	ignores, err := repo.Ignores(ctx)
	if err != nil {
		return err
	}
	inTree, below := strings.CutPrefix(rel, repo.Prefix())
	if !below || !ignored(ignores, inTree) {
		return fmt.Errorf("%s is in the repository, and git does not ignore it; name it in .gitignore, or move it out", name)
	}
	return nil
}

// ignored reports whether git ignores a file of the tree, or a folder that it is in.
func ignored(i *gitrepo.Ignores, file string) bool {
	dir := ""
	parts := strings.Split(file, "/")
	for n, part := range parts {
		if i.Folder(dir, true)(part, n < len(parts)-1) {
			return true
		}
		dir = path.Join(dir, part)
	}
	return false
}

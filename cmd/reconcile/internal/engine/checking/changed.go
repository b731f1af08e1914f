package checking

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/checks"
)

// Changed lists the files below root, the top of a work tree, that differ from the last commit, sorted: also staged and untracked ones, not ignored
// ones; and apart those that were removed.
func Changed(ctx context.Context, root string) (files, removed []string, err error) {
	out, err := readGit(ctx, root, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, line := range split(out) {
		names = append(names, line[min(3, len(line)):]) // after two states and a space
	}
	files, removed = present(root, names)
	return files, removed, nil
}

// Changes are what differs from a commit below the top of a work tree.
type Changes struct {
	Files   []string // that differ, also staged and untracked ones, not ignored ones; sorted
	Removed []string
	// Lines are those that the files have and the commit does not have, by file; files that git does not track are not among them.
	Lines map[string][]checks.LineRange
}

// Since compares the files below root, the top of a work tree, with a commit. untracked are those that git does not track.
func Since(ctx context.Context, root, commit string, untracked []string) (c Changes, err error) {
	out, err := readGit(ctx, root, "diff", "--raw", "-z", "--patch", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--src-prefix=a/", "--dst-prefix=b/", commit, "--")
	if err != nil {
		return c, err
	}
	names := slices.Clone(untracked)
	raw, diff, _ := strings.Cut(out, "\x00\x00")
	for i, part := range strings.Split(raw, "\x00") {
		if i%2 == 1 { // after its modes, hashes and state
			names = append(names, part)
		}
	}
	c.Files, c.Removed = present(root, names)
	c.Lines = linesOf(diff)
	return c, nil
}

// List lists the files below root, the top of a work tree, that git tracks or does not ignore, sorted; untracked are those of them that it does not track.
func List(ctx context.Context, root string) (files, untracked []string, err error) {
	repo, err := gitrepo.Open(root)
	if err != nil {
		return nil, nil, err
	}
	tracked, untracked, err := repo.WorkFiles(ctx)
	if err != nil {
		return nil, nil, err
	}
	files, _ = present(root, append(tracked, untracked...))
	return files, untracked, nil
}

const (
	lookers = 4 // look at files at the same time
	// crowd is the number of files in a folder from which on reading the folder takes less time than looking at each of them.
	crowd = 16
)

// present returns the names of regular files, and apart those of files that are not there; sorted, each once.
func present(root string, names []string) (files, missing []string) {
	slices.Sort(names)
	names = slices.Compact(names)
	var there, gone [lookers][]string
	var g sync.WaitGroup
	for i := range lookers {
		g.Go(func() {
			part := names[i*len(names)/lookers : (i+1)*len(names)/lookers]
			for len(part) > 0 {
				dir, n := path.Dir(part[0]), 1
				for n < len(part) && path.Dir(part[n]) == dir {
					n++
				}
				look := typesIn(filepath.Join(root, filepath.FromSlash(dir)), n)
				for _, name := range part[:n] {
					switch kind, err := look(path.Base(name)); {
					case err != nil:
						gone[i] = append(gone[i], name)
					case kind.IsRegular():
						there[i] = append(there[i], name)
					}
				}
				part = part[n:]
			}
		})
	}
	g.Wait()
	return slices.Concat(there[:]...), slices.Concat(gone[:]...)
}

// typesIn returns a function for the type of a file in a folder, by its name, that is called for n of them.
func typesIn(dir string, n int) func(name string) (fs.FileMode, error) {
	look := func(name string) (fs.FileMode, error) {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		return fi.Mode(), nil
	}
	if n < crowd {
		return look
	}
	types := map[string]fs.FileMode{}
	entries, _ := os.ReadDir(dir) // a file that it does not list is looked at
	for _, e := range entries {
		types[e.Name()] = e.Type()
	}
	return func(name string) (fs.FileMode, error) {
		if kind, known := types[name]; known {
			return kind, nil
		}
		return look(name)
	}
}

// MergeBase returns the commit where the current branch left a revision.
func MergeBase(ctx context.Context, root, base string) (string, error) {
	if repo, err := gitrepo.Open(root); err == nil && repo.Descends(ctx, base) {
		return base, nil
	}
	out, err := readGit(ctx, root, "merge-base", "--end-of-options", base, "HEAD")
	if err != nil {
		return "", fmt.Errorf("find where the branch left %s: %w", base, err)
	}
	return strings.TrimSpace(out), nil
}

// At reports whether the commit that is checked out in a work tree is that of a reference.
func At(ctx context.Context, root, ref string) (bool, error) {
	out, err := readGit(ctx, root, "rev-parse", "--revs-only", "HEAD", ref)
	if err != nil {
		return false, err
	}
	commits := strings.Fields(out)
	if len(commits) < 2 {
		return false, fmt.Errorf("it has no %s", strings.TrimPrefix(ref, "refs/heads/"))
	}
	return commits[0] == commits[1], nil
}

// readGit returns what a git command prints that changes nothing.
func readGit(ctx context.Context, root string, args ...string) (string, error) {
	out, err := gitrepo.Inspect(ctx, root, os.Environ(), args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return string(out), err
}

func split(out string) []string {
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

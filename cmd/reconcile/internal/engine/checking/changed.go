package checking

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// Changed lists the files below root, the top of a work tree, that differ from a commit, sorted: also staged and untracked ones, not ignored ones; and apart those that
// were removed. base is a revision, and the comparison is with where the current branch left it; "" is the last commit.
func Changed(ctx context.Context, root, base string) (files, removed []string, err error) {
	var names []string
	if base == "" {
		out, err := readGit(ctx, root, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
		if err != nil {
			return nil, nil, err
		}
		for _, line := range split(out) {
			names = append(names, line[min(3, len(line)):]) // after two states and a space
		}
	} else {
		from, err := mergeBase(ctx, root, base)
		if err != nil {
			return nil, nil, err
		}
		for _, args := range [][]string{{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", from}, {"ls-files", "-z", "--others", "--exclude-standard"}} {
			out, err := readGit(ctx, root, args...)
			if err != nil {
				return nil, nil, err
			}
			names = append(names, split(out)...)
		}
	}
	files, removed = present(root, names)
	return files, removed, nil
}

// Files lists the files below root that git tracks or does not ignore, sorted.
func Files(ctx context.Context, root string) ([]string, error) {
	out, err := readGit(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files, _ := present(root, split(out))
	return files, nil
}

// lookers look at files at the same time.
const lookers = 4

// present returns the names of regular files, and apart those of files that are not there; sorted, each once.
func present(root string, names []string) (files, missing []string) {
	slices.Sort(names)
	names = slices.Compact(names)
	var there, gone [lookers][]string
	var g sync.WaitGroup
	for i := range lookers {
		g.Go(func() {
			for _, name := range names[i*len(names)/lookers : (i+1)*len(names)/lookers] {
				switch fi, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); {
				case err != nil:
					gone[i] = append(gone[i], name)
				case fi.Mode().IsRegular():
					there[i] = append(there[i], name)
				}
			}
		})
	}
	g.Wait()
	return slices.Concat(there[:]...), slices.Concat(gone[:]...)
}

// mergeBase returns the commit where the current branch left a revision.
func mergeBase(ctx context.Context, root, base string) (string, error) {
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

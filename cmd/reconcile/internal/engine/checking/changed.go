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

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// Changed lists the files below root that differ from a commit, sorted: also staged and untracked ones, not ignored or removed ones. base is
// a revision, and the comparison is with where the current branch left it; "" is the last commit.
func Changed(ctx context.Context, root, base string) ([]string, error) {
	git := func(args ...string) (string, error) { return readGit(ctx, root, args...) }
	from := "HEAD"
	if base != "" {
		var err error
		if from, err = mergeBase(ctx, root, base); err != nil {
			return nil, err
		}
	}
	var names []string
	if _, err := git("rev-parse", "-q", "--verify", from+"^{commit}"); err == nil {
		out, err := git("diff", "--name-only", "-z", "--relative", "--no-renames", "--no-ext-diff", "--diff-filter=d", from, "--", ".")
		if err != nil {
			return nil, err
		}
		names = split(out)
	} else if out, err := git("ls-files", "-z", "--cached"); err == nil { // before the first commit
		names = split(out)
	} else {
		return nil, err
	}
	out, err := git("ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return present(root, append(names, split(out)...)), nil
}

// Files lists the files below root that git tracks or does not ignore, sorted.
func Files(ctx context.Context, root string) ([]string, error) {
	out, err := readGit(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return present(root, split(out)), nil
}

// present returns the names of regular files, sorted, each once.
func present(root string, names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		fi, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		return err != nil || !fi.Mode().IsRegular()
	})
}

// mergeBase returns the commit where the current branch left a revision.
func mergeBase(ctx context.Context, root, base string) (string, error) {
	out, err := readGit(ctx, root, "merge-base", "--end-of-options", base, "HEAD")
	if err != nil {
		return "", fmt.Errorf("find where the branch left %s: %w", base, err)
	}
	return strings.TrimSpace(out), nil
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

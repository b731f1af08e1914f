package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// MergeFile merges the text of theirs into ours, as git would, with base as the common ancestor. conflicts says that it
// could not do all of it: then merged has conflict markers. The arguments are paths of files, which stay as they are.
func MergeFile(ctx context.Context, base, ours, theirs string) (merged []byte, conflicts bool, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, false, fmt.Errorf("merge %s: %w", ours, err)
	}
	cmd := newGit(ctx, look, git, "", os.Environ(), "merge-file", "-p", "-L", "ours", "-L", "base", "-L", "theirs", "--", ours, base, theirs)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	merged, err = cmd.Output()
	var exit *exec.ExitError
	const most = 127 // the exit code is the number of conflicts, up to that, and above it for errors
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() <= most {
		return merged, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("git merge-file: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return merged, false, nil
}

// Configure sets values of the repository's own configuration, by name ("merge.reconcile.driver"), with the git
// command. What has the value already, there or in the user's configuration, is left as it is; changed says that
// something was not.
func (r *Repo) Configure(ctx context.Context, values ...[2]string) (changed bool, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return false, fmt.Errorf("%s: git config: %w", r.worktree, err)
	}
	for _, v := range values {
		run := func(args ...string) ([]byte, error) {
			return newGit(ctx, look, git, r.worktree, os.Environ(), append([]string{"config"}, args...)...).CombinedOutput()
		}
		if was, err := run("--get", v[0]); err == nil && string(bytes.TrimSpace(was)) == v[1] {
			continue
		}
		changed = true
		if out, err := run("--replace-all", v[0], v[1]); err != nil {
			return false, fmt.Errorf("%s: git config %s: %w: %s", r.worktree, v[0], err, bytes.TrimSpace(out))
		}
	}
	return changed, nil
}

package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// programMode selects which programs of the repository's configuration a git command may run. No command runs
// core.fsmonitor.
type programMode int

const (
	// readOnly runs no hook, filter, diff, editor, signing, ssh or credential program, and fetches nothing.
	readOnly programMode = iota
	// withPrograms runs the programs of commits and pushes: filters, the signing program and transport programs. No
	// hook.
	withPrograms
	// withHooks is withPrograms with the repository's hooks.
	withHooks
)

// Inspect returns an exec.Cmd of git with these args, which reads the repository around dir and runs no program of its
// configuration. environ is the environment; variables that point git at another repository are dropped.
func Inspect(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd {
	return newGit(ctx, readOnly, "git", dir, environ, args...)
}

// newGit creates every git command of this program; see Inspect.
func newGit(ctx context.Context, m programMode, git, dir string, environ []string, args ...string) *exec.Cmd {
	config := []string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	env := withoutRepository(environ)
	if m != withHooks {
		config = append(config, "-c", "core.hooksPath=/dev/null")
	}
	if m == readOnly {
		config = append(config, "-c", "log.showSignature=false")
		// A partial clone fetches missing objects with programs that its configuration names; older versions of git know
		// only the second variable.
		env = append(env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	}
	cmd := exec.CommandContext(ctx, git, append(config, args...)...)
	cmd.Dir, cmd.Env = dir, env
	return cmd
}

// withoutRepository drops the variables that point git at another repository than that around its working
// directory, and selects English messages.
func withoutRepository(environ []string) []string {
	var env []string
	for _, kv := range environ {
		switch key, _, _ := strings.Cut(kv, "="); key {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE",
			"GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "LC_ALL", "LANGUAGE":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}

// MergeFile merges the changes of theirs into ours, as git would, with base as the common ancestor. conflicts is
// set if the merge is incomplete: merged then has conflict markers. The arguments are file paths; the files do not
// change.
func MergeFile(ctx context.Context, base, ours, theirs string) (merged []byte, conflicts bool, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, false, fmt.Errorf("merge %s: %w", ours, err)
	}
	cmd := newGit(ctx, readOnly, git, "", os.Environ(), "merge-file", "-p", "-L", "ours", "-L", "base", "-L", "theirs", "--", ours, base, theirs)
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

// Configure sets values in the configuration of the repository by name ("merge.reconcile.driver"), with the git config
// command. It skips values that the repository's or the user's configuration already has; changed reports whether it
// set any.
func (r *Repo) Configure(ctx context.Context, values ...[2]string) (changed bool, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return false, fmt.Errorf("%s: git config: %w", r.worktree, err)
	}
	for _, v := range values {
		run := func(args ...string) ([]byte, error) {
			return newGit(ctx, readOnly, git, r.worktree, os.Environ(), append([]string{"config"}, args...)...).CombinedOutput()
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

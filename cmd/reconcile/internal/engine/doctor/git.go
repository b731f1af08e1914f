package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/worktree"
)

// gitTimeout bounds each git command; the connectivity check of a large repository takes a while.
const gitTimeout = time.Minute

// checkGit examines the tree's repository with the git command.
func checkGit(ctx context.Context, e *Patient) []Finding {
	if _, err := exec.LookPath("git"); err != nil {
		return []Finding{warn("git is not on the PATH, so the repository was not examined", "install git")}
	}
	if err := e.blocked(); err != nil {
		return []Finding{bad(err.Error(), "the repository was not examined")}
	}
	dir, err := e.git(ctx, "rev-parse", "--absolute-git-dir")
	switch {
	case err != nil && strings.Contains(err.Error(), "dubious ownership"):
		return []Finding{warn("git does not trust the repository, because its folder belongs to another user: it was not examined",
			"git config --global --add safe.directory FOLDER, if you trust its owner; git status names the folder")}
	case err != nil:
		abs, err := filepath.Abs(e.Dir)
		if err == nil {
			_, err = worktree.Find(abs)
		}
		if errors.Is(err, worktree.ErrDamaged) {
			return []Finding{bad(err.Error(), "until then --commit is not possible, and nothing is kept of what was")}
		}
		return []Finding{warn("the tree is in no git repository: --commit is not possible, and nothing is kept of what was",
			"git init, and commit specs and reconcile.yaml")}
	}
	var found []Finding
	for _, check := range []func(context.Context, string) []Finding{
		e.gitHead, e.gitObjects, e.gitIndex, e.gitIgnored, e.gitFormat, e.gitMerge, e.gitLocks,
	} {
		found = append(found, check(ctx, dir)...)
	}
	if len(found) > 0 {
		return found
	}
	return ok("repository, HEAD, index and ignored files are in order")
}

// git runs a git command in the tree and returns its output.
func (e *Patient) git(ctx context.Context, args ...string) (string, error) {
	if err := e.blocked(); err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	out, err := e.Git(ctx, e.Dir, e.Environ, args...).Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git %s: no answer within %s", args[0], gitTimeout)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		first, _, _ := strings.Cut(string(bytes.TrimSpace(exit.Stderr)), "\n")
		return strings.TrimSpace(string(out)), fmt.Errorf("git %s: %s", args[0], first)
	}
	return strings.TrimSpace(string(out)), err
}

func (e *Patient) gitHead(ctx context.Context, dir string) []Finding {
	if _, err := e.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
		return nil
	}
	branch, err := e.git(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err == nil {
		// A branch without commits has no file; one with a file and without a commit is damaged.
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(branch))); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return []Finding{bad("HEAD names no commit that can be read: nothing is committed until it does",
		"git reflog shows the last good commit; git update-ref HEAD COMMIT goes back to it")}
}

func (e *Patient) gitObjects(ctx context.Context, _ string) []Finding {
	out, err := e.git(ctx, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "no answer"):
		return []Finding{warn(err.Error(), "run git fsck --connectivity-only by hand")}
	}
	first, _, _ := strings.Cut(out, "\n")
	return []Finding{bad(strings.TrimSpace("git fsck: "+first+" "+strings.TrimPrefix(err.Error(), "git fsck:")),
		"fetch the missing objects from a clone that has them; git help fsck")}
}

func (e *Patient) gitIndex(ctx context.Context, _ string) []Finding {
	if _, err := e.git(ctx, "ls-files", "--stage", "--", ".gitignore"); err != nil {
		return []Finding{bad("the index cannot be read: "+err.Error(),
			"move .git/index away, then git reset builds it anew; changes that were staged must be staged again")}
	}
	return nil
}

// gitIgnored looks for local files that were committed by mistake.
func (e *Patient) gitIgnored(ctx context.Context, _ string) []Finding {
	files, err := e.git(ctx, "ls-files", "--", ".reconcile", ":(glob)**/*.json.lock", ":(glob)vectors/*.snapshot")
	if err != nil || files == "" {
		return nil // an unreadable index was reported already
	}
	names := strings.Split(files, "\n")
	return []Finding{warn("git keeps files that are only of local and passing use: "+some(names),
		"git rm --cached them, and add .reconcile/, state/**/*.lock and /vectors/*.snapshot to .gitignore")}
}

// gitFormat reports features for which every commit needs the git command.
func (e *Patient) gitFormat(ctx context.Context, dir string) []Finding {
	var features []string
	for _, f := range []struct{ key, value, name string }{
		{"extensions.objectformat", "sha256", "SHA-256 object names"},
		{"extensions.refstorage", "reftable", "reftable"},
		{"extensions.partialclone", "", "a partial clone"},
		{"core.splitindex", "true", "a split index"},
		{"core.sparsecheckout", "true", "a sparse checkout"},
	} {
		value, err := e.git(ctx, "config", "--get", f.key)
		if err == nil && (f.value == "" || strings.EqualFold(value, f.value)) {
			features = append(features, f.name)
		}
	}
	if len(features) == 0 {
		return nil
	}
	return []Finding{warn("the repository uses "+strings.Join(features, " and ")+
		": commits go through the git command, which is slower and must stay on the PATH", "")}
}

// gitLocks reports leftover lock files of a killed git, and unfinished commits of reconcile.
func (e *Patient) gitLocks(_ context.Context, dir string) []Finding {
	var found []Finding
	for _, name := range []string{"index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && e.Now().Sub(info.ModTime()) > leftoverAge {
			found = append(found, warn(fmt.Sprintf("%s is %s old: git was killed, or still works",
				name, e.Now().Sub(info.ModTime()).Round(time.Second)),
				"if no git is running, remove "+filepath.Join(dir, name)))
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "reconcile", "pending.json")); err == nil {
		f := warn("a commit was interrupted before the index followed it", "doctor --fix catches up; so does the next commit")
		if e.Settle != nil {
			f = f.by(e.Settle)
		}
		found = append(found, f)
	}
	return found
}

// blocked returns an error for a file on which git would block forever, if there is one.
func (e *Patient) blocked() error {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	folders := e.settings().Folders
	return worktree.Blocked(dir, filepath.Join(dir, filepath.FromSlash(folders.State)),
		filepath.Join(dir, filepath.FromSlash(folders.Specs)), filepath.Join(dir, "vectors"))
}

// gitMerge checks whether git merges state files field by field: the tree needs the attribute, and the clone needs the
// merge driver. If git does not keep the state, there is nothing to merge.
func (e *Patient) gitMerge(ctx context.Context, _ string) []Finding {
	folder := e.settings().Folders.State
	attribute, err := e.git(ctx, "check-attr", "merge", "--", folder+"/dags/any.json")
	if err != nil {
		return nil // another version of git
	}
	wanted := strings.HasSuffix(attribute, ": reconcile")
	kept, err := e.git(ctx, "ls-files", "--", folder+"/*.json")
	if err != nil || kept == "" && !wanted || !wanted && !strings.HasSuffix(attribute, ": unspecified") {
		return nil
	}
	if command, err := e.git(ctx, "config", "--get", "merge.reconcile.driver"); wanted && err == nil && command != "" {
		return nil
	}
	return []Finding{warn("where branches meet, state files are merged as text, with conflict markers in them",
		"reconcile merge-driver --install")}
}

// unignored reports whether the tree is in a repository that does not ignore a file.
func (e *Patient) unignored(ctx context.Context, name string) bool {
	if _, err := e.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return false // no repository, or no git: another check reports it
	}
	_, err := e.git(ctx, "check-ignore", "--quiet", "--no-index", "--", name)
	return err != nil
}

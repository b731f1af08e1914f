package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// errMoved reports that the reference moved since the work started: start over.
var errMoved = errors.New("the branch moved")

// errAfterMove reports a failure after the reference moved.
var errAfterMove = errors.New("the disk failed")

// target is the reference that a commit moves, with its state when the work began.
type target struct {
	Head      // an empty Ref means HEAD itself, detached
	out  bool // HEAD points to it: the index must follow
}

// readHead reads HEAD and the commit that it resolves to.
func readHead(l layout) (Head, error) {
	path := filepath.Join(l.gitDir, "HEAD")
	ref, err := readLooseHead(path)
	if err != nil {
		return Head{}, err
	}
	if hash, ok := parseHash(ref); ok {
		return Head{Hash: hash}, nil
	}
	name, ok := strings.CutPrefix(ref, "ref:")
	name = strings.TrimSpace(name)
	if !ok || !validRef(name) {
		return Head{}, fmt.Errorf("%s: damaged: %.60q is neither a commit nor a branch; set it with git symbolic-ref HEAD "+
			"refs/heads/<branch>; nothing was committed", path, ref)
	}
	hash, err := resolveRef(l, name)
	if err != nil {
		return Head{}, err
	}
	if hash == "" {
		if err := checkUnborn(l, name); err != nil {
			return Head{}, err
		}
	}
	return Head{Ref: name, Hash: hash}, nil
}

// readLooseHead reads HEAD, which in very old repositories is a symlink to the branch.
func readLooseHead(path string) (string, error) {
	if to, err := os.Readlink(path); err == nil && strings.HasPrefix(filepath.ToSlash(to), "refs/") {
		return "ref: " + filepath.ToSlash(to), nil
	}
	data, err := regular.ReadPath(path)
	return strings.TrimSpace(string(data)), err
}

// checkUnborn refuses a branch that has no commit but had one: its reference was lost, and a new root commit would
// hide all history.
func checkUnborn(l layout, ref string) error {
	log, err := regular.ReadPath(filepath.Join(l.common, "logs", filepath.FromSlash(ref)))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(log) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: the reference is missing, but its log says that it had commits; restore it with "+
		"git update-ref %s <commit>; nothing was committed", ref, ref)
}

// resolveRef returns the commit that ref names, or "" if the reference does not exist.
func resolveRef(l layout, ref string) (string, error) {
	for range 5 {
		value, err := readRef(l, ref)
		if err != nil || value == "" {
			return "", err
		}
		if hash, ok := parseHash(value); ok {
			return hash, nil
		}
		next, ok := strings.CutPrefix(value, "ref:")
		if ref = strings.TrimSpace(next); !ok || !validRef(ref) {
			return "", fmt.Errorf("%s: damaged: %.60q is no commit; restore it with git update-ref; nothing was committed",
				filepath.Join(l.common, ref), value)
		}
	}
	return "", fmt.Errorf("%s: a chain of symbolic references that does not end", ref)
}

// readRef reads a loose reference, else the packed one. It tries twice, because git pack-refs may move the
// reference in between.
func readRef(l layout, ref string) (string, error) {
	path := filepath.Join(l.common, filepath.FromSlash(ref))
	for range 2 {
		data, err := regular.ReadPath(path)
		if err == nil {
			value := strings.TrimSpace(string(data))
			if value == "" {
				return "", fmt.Errorf("%s: empty; a crash may have done that; restore it with git update-ref %s <commit> "+
					"(git reflog %s names it); nothing was committed", path, ref, ref)
			}
			return value, nil
		}
		if fi, statErr := os.Stat(path); !errors.Is(err, os.ErrNotExist) && !(statErr == nil && fi.IsDir()) && !notDir(path) {
			return "", err
		}
		if hash, err := packedRef(l, ref); err != nil || hash != "" {
			return hash, err
		}
	}
	return "", nil
}

func packedRef(l layout, ref string) (string, error) {
	path := filepath.Join(l.common, "packed-refs")
	data, err := regular.ReadPath(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(data) {
		hash, name, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if !ok || line[0] == '#' || string(name) != ref {
			continue
		}
		if h, ok := parseHash(string(hash)); ok {
			return h, nil
		}
		return "", fmt.Errorf("%s: damaged line for %s; nothing was committed", path, ref)
	}
	return "", nil
}

// validRef is git check-ref-format, for names that may become a path under the git directory.
func validRef(ref string) bool {
	if !strings.HasPrefix(ref, "refs/") || strings.HasPrefix(ref, "refs/heads/-") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") {
		return false
	}
	if strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.ContainsAny(ref, " ~^:?*[\\\x7f") {
		return false
	}
	for _, r := range ref {
		if r < ' ' {
			return false
		}
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// resolveTarget returns the reference that a commit for branch moves ("" is HEAD's), and its current commit.
func resolveTarget(l layout, branch string) (target, error) {
	head, err := readHead(l)
	if err != nil {
		return target{}, err
	}
	ref := "refs/heads/" + branch
	if branch == "" || head.Ref == ref {
		return target{Head: head, out: true}, nil
	}
	if !validRef(ref) {
		return target{}, fmt.Errorf("git.branch %q: not a branch name", branch)
	}
	if err := checkOtherWorktrees(l, ref); err != nil {
		return target{}, err
	}
	hash, err := resolveRef(l, ref)
	return target{Head: Head{Ref: ref, Hash: hash}}, err
}

// checkOtherWorktrees refuses a branch that another work tree has checked out: its index could not follow.
func checkOtherWorktrees(l layout, ref string) error {
	for _, dir := range append(linkedGitDirs(l.common), l.common) {
		if dir == l.gitDir {
			continue
		}
		if value, err := readLooseHead(filepath.Join(dir, "HEAD")); err == nil && value == "ref: "+ref {
			return fmt.Errorf("%s is checked out in another work tree (%s); commit from there, or set another git.branch", ref, dir)
		}
	}
	return nil
}

// refMove is the new commit of a reference and the message for its reflog.
type refMove struct {
	commit string
	line   string // the log's line without the two hashes
	log    bool   // create a missing log
	// first is called when only a failing disk can still prevent the move.
	first func()
}

// moveRef updates the target if it is still as resolveTarget saw it; otherwise the error is errMoved and nothing
// changes. HEAD is locked, too, so that no checkout happens in between.
func moveRef(ctx context.Context, l layout, w *scratchDir, t target, to refMove) (err error) {
	if t.out {
		head, err := w.lock(ctx, filepath.Join(l.gitDir, "HEAD"))
		if err != nil {
			return err
		}
		if t.Ref == "" {
			return swapRef(l, head, t, to)
		}
		defer func() {
			if rel := head.release(); rel != nil && err == nil {
				err = fmt.Errorf("%w: %w", errAfterMove, rel)
			}
		}()
	}
	ref, err := w.lock(ctx, filepath.Join(l.common, filepath.FromSlash(t.Ref)))
	if err != nil {
		return err
	}
	return swapRef(l, ref, t, to)
}

// swapRef compares under the lock, writes the logs, and commits the lock.
func swapRef(l layout, lock *lockFile, t target, to refMove) error {
	if err := compareCheckout(l, t); err != nil {
		return errors.Join(err, lock.release())
	}
	if err := lock.prepare([]byte(to.commit+"\n"), 0); err != nil {
		return errors.Join(err, lock.release())
	}
	if to.first != nil {
		to.first()
	}
	if t.Hash == "" { // the first commit: a log without its reference would look like a lost branch
		if err := lock.commit(); err != nil {
			return err
		}
		if err := appendLogs(l, t, to); err != nil {
			return fmt.Errorf("%w: %w", errAfterMove, err)
		}
		return nil
	}
	if err := appendLogs(l, t, to); err != nil {
		return errors.Join(err, lock.release())
	}
	return lock.commit()
}

// appendLogs adds a line to the logs of the reference and of HEAD; missing logs are created only on request.
func appendLogs(l layout, t target, to refMove) error {
	old := t.Hash
	if old == "" {
		old = strings.Repeat("0", 40)
	}
	var logs []string
	if t.out {
		logs = append(logs, filepath.Join(l.gitDir, "logs", "HEAD"))
	}
	if t.Ref != "" {
		logs = append(logs, filepath.Join(l.common, "logs", filepath.FromSlash(t.Ref)))
	}
	for _, path := range logs {
		if !to.log && !worktree.Exists(path) {
			continue
		}
		if err := appendLine(path, old+" "+to.commit+" "+to.line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// appendLine appends in one write. A torn last line is terminated first, so that it corrupts no other line.
func appendLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, fi, err := regular.OpenPath(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if fi.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, fi.Size()-1); err == nil && last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// movedRef returns the result of a commit after its reference was to move.
func movedRef(commit string, err error) (Result, error) {
	if errors.Is(err, errAfterMove) {
		return Result{Hash: commit}, fmt.Errorf("committed as %.10s, but: %w", commit, err)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Hash: commit}, nil
}

func readRefs(dir string) (remoteRefs, error) {
	refs := remoteRefs{shared: map[string]string{}}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && p == dir || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := regular.ReadPath(p)
		if err != nil {
			return err
		}
		hash, ok := parseHash(strings.TrimSpace(string(data)))
		if !ok {
			return fmt.Errorf("git fetch: %.60q is no hash", data)
		}
		if name, ok := strings.CutPrefix(p, filepath.Join(dir, "shared")+string(filepath.Separator)); ok {
			refs.shared[sharedRefs+filepath.ToSlash(name)] = hash
		} else {
			refs.head = hash
		}
		return nil
	})
	return refs, err
}

// linkedGitDirs lists the git directories of the linked work trees.
func linkedGitDirs(common string) []string {
	dirs, _ := filepath.Glob(filepath.Join(escapeGlob(common), "worktrees", "*"))
	return dirs
}

// removeEmptyDirs removes a folder that holds nothing but empty folders, which packed references leave behind where
// a reference will be created. It reports whether path is free now.
func removeEmptyDirs(path string) bool {
	if fi, err := os.Lstat(path); err != nil || !fi.IsDir() {
		return false
	}
	var dirs []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = fs.ErrExist
		}
		dirs = append(dirs, p)
		return err
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = os.Remove(dirs[i])
	}
	return err == nil
}

// SetRef sets a reference outside of the work trees to the commit, durably, whatever it was.
func (r *Repo) SetRef(ctx context.Context, ref, commit string, now time.Time) error {
	return r.either(func(n *native, _ *objectStore) error { return n.setRef(ctx, ref, commit, now) }, func(k *command) error {
		_, err := k.run(ctx, call{}, "update-ref", ref, commit)
		return remoteBusy(err)
	})
}

// Ref returns the commit that a full reference names, or "".
func (r *Repo) Ref(ref string) (string, error) { return resolveRef(r.layout, ref) }

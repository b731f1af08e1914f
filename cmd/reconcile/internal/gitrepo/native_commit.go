package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// commitCall is the state of one call of commit, shared by its attempts.
type commitCall struct {
	native *native
	w      *scratchDir
	store  *objectStore
	cfg    *gitConfig
	c      Commit
	read   map[string]readFile // nil until read
	rules  *rules
	index  *index // nil until a conversion needs it
	// fileMode is set if the file system's executable bit counts (core.fileMode).
	fileMode bool
}

// readFile is a file of the work tree as it was read; a zero blob means that it does not exist.
type readFile struct {
	data []byte
	blob blob
	stat fileStat
	err  error // why only git can store it
}

// attempt makes the commit on the current tip of the branch. It returns errMoved if the branch moved meanwhile.
func (t *commitCall) attempt(ctx context.Context) (Result, error) {
	dst, err := resolveTarget(t.native.layout, t.c.Branch)
	if err != nil {
		return Result{}, err
	}
	if dst.out {
		if err := idleIndex(t.native.layout); err != nil {
			return Result{}, err
		}
	}
	base := dst.Hash
	if base == "" && !dst.out { // a new branch starts at HEAD
		head, err := readHead(t.native.layout)
		if err != nil {
			return Result{}, err
		}
		base = head.Hash
	}
	root, err := t.store.treeOf(base)
	if err != nil {
		return Result{}, err
	}
	edits, stats, err := t.edits(ctx, root)
	if err != nil {
		return Result{}, err
	}
	if len(edits) == 0 {
		return Result{Hash: base}, ErrNothing
	}
	return t.make(ctx, dst, base, root, edits, stats)
}

// idleIndex returns an error during an operation of git that owns HEAD: a commit made then may be dropped when the
// operation is aborted.
func idleIndex(l layout) error {
	for _, op := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase or am"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	} {
		if worktree.Exists(filepath.Join(l.gitDir, op[0])) {
			return fmt.Errorf("%s: %w: a %s is in progress; finish or abort it; what was written stays in the work tree, and "+
				"the next run commits it", l.worktree, ErrBusy, op[1])
		}
	}
	return nil
}

// make builds the commit, writes it, moves the branch, and lets the index follow.
func (t *commitCall) make(ctx context.Context, dst target, base string, root plumbing.Hash, edits []edit,
	stats map[string]fileStat) (Result, error) {
	tree, objects, err := t.store.graft(root, edits)
	if err != nil {
		return Result{}, err
	}
	for _, e := range edits {
		if e.now.mode != 0 {
			objects = append(objects, object{plumbing.BlobObject, e.now.hash, t.read[e.path].data})
		}
	}
	commit, committer, err := t.commitObject(ctx, tree, base)
	if err != nil {
		return Result{}, err
	}
	follow := pending{GitDir: t.native.gitDir, Ref: dst.Ref, Old: base, New: commit.hash.String()}
	err = parallel(2, func(i int) error {
		if i == 0 {
			return t.w.write(t.native.layout, append(objects, commit))
		}
		return t.w.recordPending(dst.out, follow)
	})
	if err != nil {
		return Result{}, fmt.Errorf("write the commit below %s: %w; nothing was committed", t.native.common, err)
	}
	to := refMove{commit: follow.New, line: committer.String() + "\treconcile: " + firstLine(t.c.Message), log: t.logs(ctx)}
	if !dst.out {
		return movedRef(follow.New, moveRef(ctx, t.native.layout, t.w, dst, to))
	}
	next, late := t.native.nextIndex(ctx, t.w, t.store, root, tree, stats)
	to.first = func() { late = errors.Join(late, next.place()) }
	res, err := movedRef(follow.New, moveRef(ctx, t.native.layout, t.w, dst, to))
	if err = errors.Join(err, next.close()); err != nil {
		return res, err
	}
	if late != nil { // the index was locked, or only git can write it
		late = t.native.followIndex(ctx, t.w, t.store, root, tree, stats)
	}
	if late != nil {
		res.Warning = fmt.Sprintf("committed as %.10s, but the index has yet to follow (git status shows the opposite "+
			"change as staged until the next commit of reconcile): %v", res.Hash, late)
		return res, nil
	}
	return res, t.w.clearPending()
}

// edits compares the paths with the tree, and returns the differences, and the stat data of all existing files.
// Files are read once, also if the branch moved and the comparison is repeated.
func (t *commitCall) edits(ctx context.Context, root plumbing.Hash) ([]edit, map[string]fileStat, error) {
	if t.read == nil {
		if err := t.readFiles(ctx); err != nil {
			return nil, nil, err
		}
		t.rules = newRules(ctx, t.native.layout, t.cfg)
		if err := t.clean(); err != nil {
			return nil, nil, err
		}
		t.fileMode = t.cfg.flag(ctx, "core.filemode", true)
	}
	var edits []edit
	stats := map[string]fileStat{}
	for _, path := range t.c.Paths {
		e, err := t.edit(root, path)
		if err != nil {
			return nil, nil, err
		}
		if e.now.mode != 0 {
			stats[path] = t.read[path].stat
		}
		if e.now != e.was {
			edits = append(edits, e)
		}
	}
	return edits, stats, nil
}

func (t *commitCall) readFiles(ctx context.Context) error {
	root, err := regular.Root(t.native.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	t.read = make(map[string]readFile, len(t.c.Paths))
	for _, path := range t.c.Paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := readWorkFile(root, path)
		if err != nil {
			return err
		}
		t.read[path] = f
	}
	return nil
}

// readWorkFile reads a regular file of the work tree; a missing file is the zero value.
func readWorkFile(root *os.Root, path string) (readFile, error) {
	name := filepath.FromSlash(path)
	fi, err := root.Lstat(name)
	if errors.Is(err, os.ErrNotExist) || isNotDir(err) {
		return readFile{}, nil
	}
	if err != nil {
		return readFile{}, err
	}
	if !fi.Mode().IsRegular() {
		return readFile{}, fmt.Errorf("%s: not a plain file; reconcile commits no folders, symlinks or devices", path)
	}
	data, err := regular.Read(root, name)
	if errors.Is(err, os.ErrNotExist) {
		return readFile{}, nil
	}
	if err != nil {
		return readFile{}, err
	}
	f := readFile{data: data, blob: blob{modeFile, hashObject(plumbing.BlobObject, data)}, stat: statOf(fi)}
	if fi.Mode()&0o100 != 0 {
		f.blob.mode = modeExec
	}
	// A file that changed meanwhile gets no stat data: git will compare contents.
	if after, err := root.Lstat(name); err != nil || statOf(after) != f.stat || int64(len(data)) != fi.Size() {
		f.stat = fileStat{}
	}
	return f, nil
}

// isNotDir reports whether a parent of the path is a file, so that the path does not exist. Windows reports that as ErrNotExist.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// clean converts the files that were read to the form that git stores.
func (t *commitCall) clean() error {
	for p, f := range t.read {
		c := t.rules.conversion(p)
		if f.blob.mode == 0 || c.plain() {
			continue
		}
		if c.text == textIfGuessed && t.index == nil {
			var err error
			if t.index, err = t.native.readIndex(); err != nil {
				return err
			}
		}
		data, err := c.clean(f.data, func() []byte { return indexContent(t.index, t.store, p) })
		switch {
		case c.filter:
			f.err = &needsGit{p + " has a filter"}
		case err != nil:
			f.err = &needsGit{err.Error()}
		default:
			f.data, f.blob.hash = data, hashObject(plumbing.BlobObject, data)
		}
		t.read[p] = f
	}
	return nil
}

// edit compares one path with the tree. An ignored path gives an edit without a change.
func (t *commitCall) edit(root plumbing.Hash, path string) (edit, error) {
	was, err := t.store.file(root, path)
	if err != nil {
		return edit{}, err
	}
	if was.mode != 0 && was.mode != modeFile && was.mode != modeExec {
		return edit{}, fmt.Errorf("%s: on the branch this is a folder, symlink or submodule; commit that change first", path)
	}
	now := t.read[path].blob
	switch {
	case now.mode == 0:
		return edit{path: path, was: was}, nil
	case was.mode == 0 && t.rules.ignored(path):
		return edit{path: path}, nil
	case t.read[path].err != nil:
		return edit{}, t.read[path].err
	}
	if !t.fileMode {
		now.mode = max(was.mode, modeFile)
	}
	return edit{path, was, now}, nil
}

// commitObject builds the commit, signed if wanted.
func (t *commitCall) commitObject(ctx context.Context, tree plumbing.Hash, parent string) (object, identity, error) {
	author, committer, err := identities(ctx, t.cfg, t.c.Author, t.c.When)
	if err != nil {
		return object{}, identity{}, err
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "tree %s\n", tree)
	if parent != "" {
		fmt.Fprintf(&head, "parent %s\n", parent)
	}
	fmt.Fprintf(&head, "author %s\ncommitter %s\n", author, committer)
	body := "\n" + strings.TrimSpace(strings.ReplaceAll(t.c.Message, "\x00", "")) + "\n"
	wanted, err := signs(ctx, t.cfg, t.c.Sign)
	if err != nil {
		return object{}, identity{}, err
	}
	if wanted {
		signature, err := sign(ctx, t.cfg, t.w, committer, []byte(head.String()+body))
		if err != nil {
			return object{}, identity{}, err
		}
		head.WriteString(signatureHeader(signature))
	}
	return newObject(plumbing.CommitObject, []byte(head.String()+body)), committer, nil
}

// logs reports whether new reflogs are created (core.logAllRefUpdates); existing ones are always continued.
func (t *commitCall) logs(ctx context.Context) bool {
	return t.cfg.flag(ctx, "core.logallrefupdates", true)
}

func pathsOf(edits []edit) []string {
	out := make([]string, len(edits))
	for i, e := range edits {
		out[i] = e.path
	}
	slices.Sort(out)
	return out
}

// writeCommit makes a commit of a tree durable, with the objects that it needs. No reference moves.
func (n *native) writeCommit(ctx context.Context, s *objectStore, tree plumbing.Hash, objects []object, parent string, c Commit) (hash string, err error) {
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return "", err
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	commit, _, err := (&commitCall{native: n, w: w, store: s, cfg: cfg, c: c}).commitObject(ctx, tree, parent)
	if err != nil {
		return "", err
	}
	return commit.hash.String(), w.write(n.layout, append(objects, commit))
}

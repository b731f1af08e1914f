package gitrepo

import (
	"cmp"
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

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state/regular"
)

// Files that a run produced are kept as a tree object with their paths, named by refs/reconcile/outputs/<key>. The
// same files give the same tree, so that two repositories that keep them agree.

// errNotKept reports that the reference, or the file in its tree, does not exist.
var errNotKept = errors.New("not kept in git")

// KeptFile is a file to keep.
type KeptFile struct {
	Path       string // slash path below the root of the tree object
	Executable bool
	Data       []byte
}

// Kept returns the kept trees of this repository, by key: the hashes of the refs to them, packed or not.
func (r *Repo) Kept() (map[string]string, error) {
	kept := map[string]string{}
	packed, err := regular.ReadPath(filepath.Join(r.common, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		noteKept(kept, hash, ref)
	}
	top := filepath.Join(r.common, filepath.FromSlash(keptRefs))
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir() || strings.HasSuffix(p, ".lock"):
			return err
		}
		data, err := regular.ReadPath(p)
		if err == nil {
			noteKept(kept, strings.TrimSpace(string(data)), keptRefs+filepath.ToSlash(strings.TrimPrefix(p, top+string(filepath.Separator))))
		}
		return err
	})
	return kept, err
}

func noteKept(kept map[string]string, hash, ref string) {
	key, ok := strings.CutPrefix(ref, keptRefs)
	if _, isHash := parseHash(hash); ok && isHash && key != "" {
		kept[key] = hash
	}
}

// Keep keeps files under a key, durably, and returns the hash of their tree. The reference appears after everything
// that it names is on disk.
func (r *Repo) Keep(ctx context.Context, key string, files []KeptFile) (hash string, err error) {
	ref := keptRefs + key
	switch {
	case r.why != nil:
		return "", fmt.Errorf("%s: outputs are kept only in repositories with SHA-1 names and plain files for references: %w", r.common, r.why)
	case !validRef(ref):
		return "", fmt.Errorf("%q: not a name for a reference", ref)
	}
	objects, edits := keptObjects(files)
	w, err := openScratchDir(ctx, r.layout, lockTimeout)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	store := newObjectStore(r.layout)
	defer store.close()
	root, trees, err := store.graft(plumbing.ZeroHash, edits)
	if err != nil {
		return "", err
	}
	if err := w.write(r.layout, append(objects, trees...)); err != nil {
		return "", err
	}
	lock, err := w.lock(ctx, filepath.Join(r.common, filepath.FromSlash(ref)))
	if err != nil {
		return "", err
	}
	if err := lock.prepare([]byte(root.String()+"\n"), 0); err != nil {
		return "", errors.Join(err, lock.release())
	}
	return root.String(), lock.commit()
}

func keptObjects(files []KeptFile) (objects []object, edits []edit) {
	for _, f := range files {
		o := newObject(plumbing.BlobObject, f.Data)
		mode := uint32(modeFile)
		if f.Executable {
			mode = modeExec
		}
		objects = append(objects, o)
		edits = append(edits, edit{path: f.Path, now: blob{mode, o.hash}})
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.path, b.path) })
	return objects, edits
}

// Drop removes the trees kept under keys, given with their hashes. A key that now has another tree stays.
func (r *Repo) Drop(ctx context.Context, kept map[string]string) error {
	if r.command == nil || len(kept) == 0 {
		return nil // the git command created it, and can remove it
	}
	var commands strings.Builder
	for key, hash := range kept {
		fmt.Fprintf(&commands, "delete %s%s %s\n", keptRefs, key, hash)
	}
	_, err := r.command.(*command).run(ctx, call{stdin: []byte(commands.String())}, "update-ref", "--no-deref", "--stdin")
	return remoteBusy(err)
}

// OpenKept opens the file at a path of a kept tree, to read it. Its content is untrusted: anyone who can push may have
// written it. The error wraps errNotKept if the file does not exist or is not a regular file.
func (r *Repo) OpenKept(ctx context.Context, tree, path string) (io.ReadCloser, error) {
	return r.openKept(ctx, r.layout, nil, tree, path)
}

// openKept is OpenKept for a tree among the objects of l, which env tells git to use.
func (r *Repo) openKept(ctx context.Context, l layout, env []string, tree, path string) (io.ReadCloser, error) {
	if r.command == nil {
		return nil, fmt.Errorf("%s: %w", r.worktree, errUnsupported)
	}
	store := newObjectStore(l)
	defer store.close()
	at, err := store.file(plumbing.NewHash(tree), path)
	switch {
	case err != nil:
		return nil, err
	case at.mode == 0:
		return nil, fmt.Errorf("%s: %w", path, errNotKept)
	case at.mode != modeFile && at.mode != modeExec:
		return nil, fmt.Errorf("%s: %w: it is no ordinary file there", path, errNotKept)
	}
	k := r.command.(*command)
	cmd := newGit(ctx, k.mode, k.git, k.worktree, os.Environ(), "cat-file", "blob", at.hash.String())
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	return &blobReader{out, func() {
		_ = cmd.Process.Kill() // it may have unread output
		_ = cmd.Wait()
	}}, nil
}

// blobReader is a command's output; closing it ends the command.
type blobReader struct {
	io.Reader
	end func()
}

func (b *blobReader) Close() error {
	b.end()
	return nil
}

// Kept asks the remote for its branch and for its kept trees, by key.
func (m *Remote) Kept(ctx context.Context) (head string, kept map[string]string, err error) {
	said, err := m.talk(ctx, false, nil, "ls-remote", "--quiet", "--", m.name, m.ref, keptRefs+"*")
	if err != nil {
		return "", nil, m.unreachable(ctx, said, err)
	}
	kept = map[string]string{}
	for line := range strings.Lines(said.stdout) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if ref == m.ref {
			head = hash
		}
		noteKept(kept, hash, ref)
	}
	return head, kept, nil
}

// keptAtOnce is the maximum number of references that one push changes.
const keptAtOnce = 100

// ChangeKept changes the remote's kept trees from was to now, both by key: "" and absence mean no tree. A key that
// another process changed meanwhile stays, and is an error.
func (m *Remote) ChangeKept(ctx context.Context, was, now map[string]string) error {
	var updates []refUpdate
	for key, hash := range now {
		if was[key] != hash {
			updates = append(updates, refUpdate{ref: keptRefs + key, value: hash, lease: true, old: was[key]})
		}
	}
	slices.SortFunc(updates, func(a, b refUpdate) int { return cmp.Compare(a.ref, b.ref) })
	for part := range slices.Chunk(updates, keptAtOnce) {
		answers, err := m.send(ctx, part, false)
		if err != nil {
			return err
		}
		for _, u := range part {
			if a := answers[u.ref]; !a.done {
				return a.err(fmt.Sprintf("%s: %s", m, u.ref), "allow this account to push below refs/reconcile")
			}
		}
	}
	return nil
}

// FetchKept fetches the remote's tree under a key into a temporary folder, which is removed when use returns; open
// is [Repo.OpenKept] there. Nothing in this repository changes. It stops after limit bytes. The error wraps
// errNotKept then, and if the tree does not exist.
func (m *Remote) FetchKept(ctx context.Context, key string, limit int64, use func(open OpenFunc) error) error {
	ref := keptRefs + key
	if !validRef(ref) {
		return fmt.Errorf("%q: not a name for a reference", ref)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	return m.fetchAside(limited, func(fetch fetchFunc, dir string) error {
		dir = filepath.Dir(filepath.Dir(dir))
		objects, err := borrowingGit(dir, m.repo.common)
		if err != nil {
			return err
		}
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			watchSize(limited, objects, limit, cancel)
		}()
		said, err := fetch(objects, "+"+ref+":refs/worktree/kept")
		cancel()
		<-watched
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case folderSize(objects) > limit:
			return fmt.Errorf("%s on %s: %w: it has more than the %d bytes that its record tells of", ref, m.name, errNotKept, limit)
		case err != nil && strings.Contains(said.stderr, "couldn't find remote ref "+ref):
			return fmt.Errorf("%s on %s: %w", ref, m.name, errNotKept)
		case err != nil:
			return m.unreachable(ctx, said, err)
		}
		hash, err := regular.ReadPath(filepath.Join(dir, "refs", "worktree", "kept"))
		if err != nil {
			return err
		}
		return use(func(path string) (io.ReadCloser, error) {
			return m.repo.openKept(ctx, layout{worktree: m.repo.worktree, gitDir: dir, common: dir}, []string{objectsVar + objects}, strings.TrimSpace(string(hash)), path)
		})
	})
}

// objectsVar is git's variable for the object folder.
const objectsVar = "GIT_OBJECT_DIRECTORY="

// OpenFunc reads a file of a tree.
type OpenFunc func(path string) (io.ReadCloser, error)

// watchSize calls stop once a folder exceeds limit bytes, and returns then, or when ctx ends.
func watchSize(ctx context.Context, dir string, limit int64, stop func()) {
	const often = 20 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if folderSize(dir) > limit {
				stop()
				return
			}
		}
	}
}

// folderSize sums the sizes of the files below a folder. It ignores files that disappear meanwhile.
func folderSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				size += fi.Size()
			}
		}
		return nil
	})
	return size
}

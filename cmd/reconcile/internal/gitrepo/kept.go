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

// Files that a run left behind are kept as a tree object with their paths, which refs/reconcile/outputs/<key> names. The same
// files make the same tree, so that two repositories that keep them agree.

// ErrNotKept says that there is no such reference, or that it does not have a file.
var ErrNotKept = errors.New("not kept in git")

// KeptFile is a file to be kept.
type KeptFile struct {
	Path       string // slash path below the root of the tree object
	Executable bool
	Data       []byte
}

// Kept returns the trees that are kept in this repository, by key.
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

// Keep keeps files under a key, durably, and returns the hash of their tree. The reference appears when everything that it
// names is on disk.
func (r *Repo) Keep(ctx context.Context, key string, files []KeptFile) (hash string, err error) {
	ref := keptRefs + key
	switch {
	case r.why != nil:
		return "", fmt.Errorf("%s: outputs are kept only in repositories with SHA-1 names and plain files for references: %w", r.common, r.why)
	case !validRef(ref):
		return "", fmt.Errorf("%q: not a name for a reference", ref)
	}
	objects, edits := keptObjects(files)
	w, err := enterWorkshop(ctx, r.layout, patience)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.leave()) }()
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

// Drop removes what is kept under keys, given with the hashes of the trees: what has another one by now stays.
func (r *Repo) Drop(ctx context.Context, kept map[string]string) error {
	if r.command == nil || len(kept) == 0 {
		return nil // the git command made it, and can remove it
	}
	var commands strings.Builder
	for key, hash := range kept {
		fmt.Fprintf(&commands, "delete %s%s %s\n", keptRefs, key, hash)
	}
	_, err := r.command.(*command).run(ctx, call{stdin: []byte(commands.String())}, "update-ref", "--no-deref", "--stdin")
	return busy(err)
}

// OpenKept reads a file of a tree. Nothing that it says is to be believed: anybody who can push may have made it. The error
// wraps ErrNotKept if there is no such file, or no ordinary one.
func (r *Repo) OpenKept(ctx context.Context, tree, path string) (io.ReadCloser, error) {
	return r.openKept(ctx, r.layout, nil, tree, path)
}

// openKept is OpenKept for a tree among the objects of l, which env has git look at.
func (r *Repo) openKept(ctx context.Context, l layout, env []string, tree, path string) (io.ReadCloser, error) {
	if r.command == nil {
		return nil, fmt.Errorf("%s: %w", r.worktree, ErrUnsupported)
	}
	store := newObjectStore(l)
	defer store.close()
	at, err := store.file(plumbing.NewHash(tree), path)
	switch {
	case err != nil:
		return nil, err
	case at.mode == 0:
		return nil, fmt.Errorf("%s: %w", path, ErrNotKept)
	case at.mode != modeFile && at.mode != modeExec:
		return nil, fmt.Errorf("%s: %w: it is no ordinary file there", path, ErrNotKept)
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
		_ = cmd.Process.Kill() // it may have more to say than is read
		_ = cmd.Wait()
	}}, nil
}

// blobReader is the output of a command that ends with it.
type blobReader struct {
	io.Reader
	end func()
}

func (b *blobReader) Close() error {
	b.end()
	return nil
}

// Kept asks the remote for its branch and for what is kept there, by key.
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

// keptAtOnce bounds how many references one push changes.
const keptAtOnce = 100

// ChangeKept brings what is kept on the remote from was to now, both by key: "" and absence mean nothing. What somebody else
// changed meanwhile is left as it is, and is an error.
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

// FetchKept brings what is kept on the remote under a key into a folder of its own, which is gone when use returns; open is
// [Repo.OpenKept] there. Nothing of this repository changes. Of a remote that sends more than most bytes the rest is not
// awaited. The error wraps ErrNotKept then, and if there is nothing.
func (m *Remote) FetchKept(ctx context.Context, key string, most int64, use func(open OpenFunc) error) error {
	ref := keptRefs + key
	if !validRef(ref) {
		return fmt.Errorf("%q: not a name for a reference", ref)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	return m.aside(limited, func(fetch fetchFunc, dir string) error {
		dir = filepath.Dir(filepath.Dir(dir))
		objects, err := borrowing(dir, m.repo.common)
		if err != nil {
			return err
		}
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			watchSize(limited, objects, most, cancel)
		}()
		said, err := fetch(objects, "+"+ref+":refs/worktree/kept")
		cancel()
		<-watched
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case folderSize(objects) > most:
			return fmt.Errorf("%s on %s: %w: it has more than the %d bytes that its record tells of", ref, m.name, ErrNotKept, most)
		case err != nil && strings.Contains(said.stderr, "couldn't find remote ref "+ref):
			return fmt.Errorf("%s on %s: %w", ref, m.name, ErrNotKept)
		case err != nil:
			return m.unreachable(ctx, said, err)
		}
		hash, err := regular.ReadPath(filepath.Join(dir, "refs", "worktree", "kept"))
		if err != nil {
			return err
		}
		return use(func(path string) (io.ReadCloser, error) {
			return m.repo.openKept(ctx, layout{m.repo.worktree, dir, dir}, []string{objectsVar + objects}, strings.TrimSpace(string(hash)), path)
		})
	})
}

// objectsVar names the folder of objects to git.
const objectsVar = "GIT_OBJECT_DIRECTORY="

// OpenFunc reads a file of a tree.
type OpenFunc func(path string) (io.ReadCloser, error)

// watchSize calls stop once a folder has more than most bytes, and returns then, or when ctx ends.
func watchSize(ctx context.Context, dir string, most int64, stop func()) {
	const often = 20 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if folderSize(dir) > most {
				stop()
				return
			}
		}
	}
}

// folderSize adds up the files below a folder. What goes meanwhile does not count.
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

package workspaces

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// watched is the state of a place outside of a workspace before an unconfined run.
//
// No one can tell afterwards who wrote a file. Writes of other processes are recognized by their form: reconcile replaces files and never
// changes them in place; a commit, a landing and a checkout leave files equal to those of the branch. docs/sandbox.md describes the remaining gaps.
type watched struct {
	w     *workspace
	tree  bool            // the run works in the tree itself, whose other files it may change
	dirty map[string]bool // tracked files that differed from the commit that is checked out
	files map[string]mark // by absolute path
	// untracked are the files of the work tree that were neither tracked nor ignored, below its top.
	untracked map[string]bool
}

// mark is a file as it was. The digest is only taken of files that are compared by content, and is that of [digested].
type mark struct {
	info   fs.FileInfo
	birth  int64
	digest [sha256.Size]byte
	owner  *Owner // of the workspace that the file is in, in which nobody worked
}

// Watch implements runner.Workspace.
func (w *workspace) Watch(ctx context.Context) (func(context.Context, bool) ([]string, error), error) {
	before := &watched{w: w}
	var err error
	if before.dirty, err = w.dirty(ctx); err != nil {
		return nil, err
	}
	if before.untracked, err = w.untracked(ctx); err != nil {
		return nil, err
	}
	if before.files, err = w.marks(); err != nil {
		return nil, err
	}
	return before.changed, nil
}

// WatchTree implements runner.Workspaces.
func (m *Manager) WatchTree(context.Context) (func(context.Context, bool) ([]string, error), error) {
	before := &watched{w: &workspace{m: m}, tree: true}
	repo, err := m.repository()
	switch {
	case err == nil:
		before.w.repo = repo
	case !errors.Is(err, gitrepo.ErrNotARepo):
		return nil, err
	}
	if before.files, err = before.w.marks(); err != nil {
		return nil, err
	}
	return before.changed, nil
}

// dirty are the tracked files that differ from the commit, below the top; without those that reconcile writes.
func (w *workspace) dirty(ctx context.Context) (map[string]bool, error) {
	names, err := w.repo.Changed(ctx)
	if err != nil {
		return nil, err
	}
	state := w.repo.Prefix() + w.m.o.Settings.Folders.State + "/"
	out := map[string]bool{}
	for _, name := range names {
		if !strings.HasPrefix(name, state) {
			out[name] = true
		}
	}
	return out, nil
}

// untracked are the files of the work tree that git neither tracks nor ignores, below the top; without those that reconcile writes for
// runs: its own folder, the observed state, outputs of other runs, and specs that agents may write.
func (w *workspace) untracked(ctx context.Context) (map[string]bool, error) {
	names, err := w.repo.Untracked(ctx)
	if err != nil {
		return nil, err
	}
	folders := w.m.o.Settings.Folders
	out := map[string]bool{}
	for _, name := range names {
		own, inTree := strings.CutPrefix(name, w.repo.Prefix())
		below := func(dir string) bool { return inTree && strings.HasPrefix(own, dir+"/") }
		switch {
		case below(".reconcile") || below(folders.State) || strings.Contains(name, ".reconcile-copy-"):
		case w.m.delivers(name):
		case below(folders.Specs) && !w.isAgent(name):
		default:
			out[name] = true
		}
	}
	return out, nil
}

// isAgent reports whether a file may be the spec of an agent, which no run may write.
func (w *workspace) isAgent(name string) bool {
	text, err := regular.ReadPath(filepath.Join(w.repo.Worktree(), filepath.FromSlash(name)))
	return err == nil && strings.Contains(string(text), "Agent")
}

// byContent are the files that are compared by content: hooks and configuration of the repository, and settings and specs of agents in the tree.
func (w *workspace) byContent() (git, tree []string, err error) {
	at, err := worktree.Find(w.m.tree)
	switch {
	case err == nil:
		if git, err = hooks(at.Common); err != nil {
			return nil, nil, err
		}
		git = append(git, filepath.Join(at.Common, "config"), filepath.Join(at.GitDir, "config.worktree"))
	case w.repo != nil:
		return nil, nil, err
	}
	for _, name := range []string{"reconcile.yaml", "reconcile.yml", "reconcile.json"} {
		tree = append(tree, filepath.Join(w.m.tree, name))
	}
	specs, err := below(filepath.Join(w.m.tree, w.m.o.Settings.Folders.Specs))
	for _, name := range specs {
		if text, readErr := regular.ReadPath(name); readErr == nil && strings.Contains(string(text), "Agent") {
			tree = append(tree, name)
		}
	}
	return git, tree, err
}

// hooks are the hooks of a repository, and their folder itself where it is a link.
func hooks(common string) ([]string, error) {
	dir := filepath.Join(common, "hooks")
	out, err := below(dir)
	if real, linkErr := filepath.EvalSymlinks(dir); err == nil && linkErr == nil && slices.Equal(out, []string{dir}) {
		var linked []string
		linked, err = below(real)
		out = append(out, linked...)
	}
	return out, err
}

// below lists the files and links below a folder, which need not exist.
func below(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && (d.Type().IsRegular() || d.Type() == fs.ModeSymlink) {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// digested is the text of a file, or the target of a link, with a digest of it that tells both apart, and a file that may be executed from
// one that may not.
func digested(name string) (text []byte, digest [sha256.Size]byte, err error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return nil, digest, err
	}
	kind := "file"
	switch {
	case fi.Mode().Type() == fs.ModeSymlink:
		var target string
		target, err = os.Readlink(name)
		kind, text = "link", []byte(target)
	case fi.Mode()&0o111 != 0:
		kind = "program"
		fallthrough
	default:
		text, err = regular.ReadPath(name)
	}
	return text, sha256.Sum256(append([]byte(kind+"\x00"), text...)), err
}

// inPlace are the files that only reconcile writes, which replaces them: the observed state, and the records of workspaces.
func (w *workspace) inPlace() ([]string, error) {
	out, err := below(filepath.Join(w.m.tree, w.m.o.Settings.Folders.State))
	if err != nil {
		return nil, err
	}
	records, err := filepath.Glob(filepath.Join(w.m.dir, "*"+recordSuffix))
	return append(out, records...), err
}

// atRest are files of other workspaces in which no one works, each with the owner of its workspace: all of those whose work goes on or is to
// land, and those at the top of all others.
func (w *workspace) atRest() (map[string]*Owner, error) {
	out := map[string]*Owner{}
	all, err := w.m.owners()
	for _, o := range all {
		if o.Name == w.owner.Name || o.State == stateCreated || o.Process.PID != 0 { // what a killed reconcile left may still be at work
			continue
		}
		top := w.m.path(o.Name)
		_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil: // it may be gone by now
			case d.IsDir() && p != top && (!o.unfinished() || p == filepath.Join(top, ".git", "objects")):
				return fs.SkipDir
			case !d.IsDir():
				out[p] = &o
			}
			return nil
		})
	}
	return out, err
}

func (w *workspace) marks() (map[string]mark, error) {
	out := map[string]mark{}
	git, tree, err := w.byContent()
	replaced, err2 := w.inPlace()
	resting, err3 := w.atRest()
	for _, name := range slices.AppendSeq(replaced, maps.Keys(resting)) {
		if fi, err := os.Lstat(name); err == nil {
			out[name] = mark{info: fi, birth: disk.Birth(name), owner: resting[name]}
		}
	}
	for _, name := range append(git, tree...) {
		if _, digest, err := digested(name); err == nil {
			out[name] = mark{digest: digest}
		}
	}
	return out, errors.Join(err, err2, err3)
}

// changed lists what a run wrote outside of its workspace: paths below the tree, or absolute ones, sorted.
func (b *watched) changed(ctx context.Context, shared bool) ([]string, error) {
	found, err := b.look(ctx, shared)
	if err != nil || len(found) == 0 || b.w.repo == nil {
		return b.named(found), err
	}
	var again []string
	err = b.w.repo.WhileStill(ctx, func() (err error) { // a commit that is landing, or a command of git, is over then
		again, err = b.look(ctx, shared)
		return err
	})
	found = slices.DeleteFunc(found, func(name string) bool { return !slices.Contains(again, name) })
	return b.named(found), err
}

// named sorts files, and names those in the tree by their paths below it.
func (b *watched) named(files []string) []string {
	for i, name := range files {
		if rel, ok := worktree.Within(b.w.m.tree, name); ok {
			files[i] = rel
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

func (b *watched) look(ctx context.Context, shared bool) (found []string, err error) {
	if b.tree {
		return b.lookAtMarks()
	}
	now, err := b.w.dirty(ctx)
	if err != nil {
		return nil, err
	}
	for name := range now {
		if !b.dirty[name] && !shared {
			found = append(found, filepath.Join(b.w.repo.Worktree(), filepath.FromSlash(name)))
		}
	}
	fresh, err := b.w.untracked(ctx)
	if err != nil {
		return nil, err
	}
	for name := range fresh {
		if !b.untracked[name] && !shared {
			found = append(found, filepath.Join(b.w.repo.Worktree(), filepath.FromSlash(name)))
		}
	}
	marked, err := b.lookAtMarks()
	return append(found, marked...), err
}

// lookAtMarks finds what changed of the files that are known, new hooks, specs of agents and settings, and files of the observed state
// that reconcile did not write.
func (b *watched) lookAtMarks() (found []string, err error) {
	git, tree, err := b.w.byContent()
	if err != nil {
		return nil, err
	}
	if b.tree { // of a run elsewhere, such files are among those that git does not track
		git = append(git, tree...)
	}
	for name, was := range b.files {
		if b.differs(name, was) {
			found = append(found, name)
		}
	}
	for _, name := range git {
		if _, known := b.files[name]; !known && b.differs(name, mark{}) {
			found = append(found, name)
		}
	}
	added, err := b.added()
	forged, err2 := b.forged()
	return slices.Concat(found, added, forged), errors.Join(err, err2)
}

// differs reports whether a file changed in a way that no one else changes it. The zero mark is that of a file that did not exist.
func (b *watched) differs(name string, was mark) bool {
	if was.info == nil {
		text, digest, err := digested(name)
		switch {
		case err != nil:
			return was != mark{} || !errors.Is(err, fs.ErrNotExist) // of a file that is new, that it exists is the difference
		case digest == was.digest:
			return false
		}
		return !b.committed(name, text)
	}
	is, err := os.Lstat(name)
	changed := err != nil || !os.SameFile(is, was.info) || is.Mode() != was.info.Mode() || is.Size() != was.info.Size() || !is.ModTime().Equal(was.info.ModTime())
	if was.owner != nil {
		return changed && b.rests(was.owner)
	}
	return changed && was.birth != 0 && was.still(name)
}

// rests reports whether no one has worked in a workspace since. Its node may have gone on: what it changed was sent back, or retried.
func (b *watched) rests(o *Owner) bool {
	now, err := b.w.m.read(o.Name)
	return err == nil && now == *o
}

// added lists new files in workspaces in which no one has worked.
func (b *watched) added() (out []string, err error) {
	were := map[string]*Owner{}
	for _, was := range b.files {
		if was.owner != nil {
			were[was.owner.Name] = was.owner
		}
	}
	resting, err := b.w.atRest()
	for name, o := range resting {
		if _, known := b.files[name]; !known && were[o.Name] != nil && *were[o.Name] == *o {
			out = append(out, name)
		}
	}
	return out, err
}

// committed reports whether a file is as in the commit that is checked out, as after a landing or a person's commit.
func (b *watched) committed(name string, text []byte) bool {
	if b.w.repo == nil {
		return false
	}
	rel, err := filepath.Rel(b.w.repo.Worktree(), name)
	if err != nil {
		return false
	}
	ctx := context.Background()
	head, err := b.w.repo.Head(ctx)
	if err != nil {
		return false
	}
	there, err := b.w.repo.Blob(ctx, head.Hash, filepath.ToSlash(rel))
	return err == nil && string(there) == string(text)
}

// forged are files of the observed state that are new or were replaced, and that reconcile did not write: it replaces files as a whole, so that
// each that is named as JSON is JSON.
func (b *watched) forged() ([]string, error) {
	all, err := below(filepath.Join(b.w.m.tree, b.w.m.o.Settings.Folders.State))
	var out []string
	for _, name := range all {
		if filepath.Ext(name) != ".json" || b.files[name].still(name) {
			continue
		}
		if text, _, err := digested(name); err == nil && len(text) > 0 && !json.Valid(text) {
			out = append(out, name)
		}
	}
	return out, err
}

// still reports whether the file at a path is the marked one, and not another that replaced it.
func (m mark) still(name string) bool {
	is, err := os.Lstat(name)
	return err == nil && m.info != nil && os.SameFile(is, m.info) && disk.Birth(name) == m.birth
}

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state/lock"
)

// Ownership says what Adopt may do with a file.
type Ownership int

// Whose a file is.
const (
	// None is a person's: it is never overwritten, and a commit that changes it is replayed, or in conflict.
	None Ownership = iota
	// Status is decided anew from what else is there: the remote's version wins, and local ones are dropped.
	Status
	// Record never changes once it is written: the remote's version wins where it has one, and else ours is kept.
	Record
	// Shared is a Status that programs of other makes write, too: what they wrote is carried into the remote's version.
	Shared
)

// Owners says what Adopt may do with the files below the directory given to Open, by their paths from there.
type Owners struct {
	Of func(path string) Ownership
	// Lock takes the lock that all who write a Shared file take. It is held while the file is compared and replaced.
	Lock func(ctx context.Context, path string) (*lock.Lock, error)
	// Join says what a Shared file is to hold that Adopt replaces.
	Join func(path string, v Versions) ([]byte, error)
}

// Versions are the contents of a Shared file, nil where there is none.
type Versions struct {
	Base  []byte // where the two branches parted
	There []byte // in the work tree, under the lock
	Next  []byte // of the remote
}

// Adopted is what Adopt did.
type Adopted struct {
	Moved bool     // the branch, or some file, is no longer as it was
	Paths []string // the files that changed, below the directory given to Open, sorted
	// Warning is empty, or says what a person has to look at: an index that has yet to follow, or a commit that somebody
	// left and that only a person can take in (once for each).
	Warning string
}

// Conflict says why a tip cannot be adopted. Nothing was changed.
type Conflict struct {
	Paths []string // below the work tree, sorted; may be empty
	What  string   // what is in the way, and what to do
}

func (c *Conflict) Error() string {
	const most = 5
	names := strings.Join(c.Paths[:min(len(c.Paths), most)], ", ")
	if more := len(c.Paths) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if names == "" {
		return c.What
	}
	return names + ": " + c.What
}

// Adopt puts the branch, the index and the work tree on top of the tip. Where the local branch has commits that the tip
// lacks, those of people are replayed on it with author and message kept, and those of reconcile are dropped, but for
// their records, which stay as files and belong into the next commit. Records that others left as pending are written
// as files, too. What is not below the directory given to Open is a person's.
//
// What the user changed, staged or not, is never touched: a file that is to change and was changed is a *[Conflict], as
// is a local commit that changes what the tip changed, and then nothing happened. Killed anywhere, the next call of
// Adopt, Commit or Settle takes back what was not finished. The error wraps [ErrBusy] while git is in the middle of
// something, or somebody else holds one of its locks.
func (m *Remote) Adopt(ctx context.Context, tip Tip, owners Owners) (got Adopted, err error) {
	n := m.repo.native.(*native)
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return Adopted{}, err
	}
	w, err := enterWorkshop(ctx, n.layout, n.patience)
	if err != nil {
		return Adopted{}, err
	}
	for range 5 {
		if got, err = m.adopt(ctx, n, cfg, w, tip, owners); !errors.Is(err, errMoved) {
			break
		}
	}
	if errors.Is(err, errMoved) {
		err = fmt.Errorf("%s: %w: %w faster than it can follow; run again", n.worktree, ErrBusy, err)
	}
	if err = errors.Join(m.partial(err), w.leave()); err == nil && len(tip.Pending) > 0 {
		m.tidy(ctx, tip.Head) // what is on the branch already
	}
	return got, err
}

// partial explains what a repository without all of its objects lacks.
func (m *Remote) partial(err error) error {
	var missing *needsGit
	if errors.As(err, &missing) {
		return &Conflict{What: fmt.Sprintf("%v, so that reconcile cannot put this branch on top of %s; run git pull, then run again", missing, m)}
	}
	return err
}

// adoption is the work of one call of Adopt.
type adoption struct {
	*ground
	m      *Remote
	owners Owners
	target target
	old    string // the commit that the local branch is at; "" if it has none
	tip    string
	base   string // where the branch and the tip parted; "" if they have nothing in common
	line   line
	people bool
	united map[string]united // by full reference
	alien  []Pending         // that only a person can take in
}

func (m *Remote) adopt(ctx context.Context, n *native, cfg *gitConfig, w *workshop, tip Tip, owners Owners) (Adopted, error) {
	a := &adoption{ground: newGround(ctx, n, cfg, w), m: m, owners: owners, tip: tip.Head, united: map[string]united{}}
	a.ground.owner = a.owner
	defer a.store.close()
	if err := n.catchUp(ctx, w, a.store); err != nil {
		return Adopted{}, err
	}
	if err := idle(n.layout); err != nil {
		return Adopted{}, err
	}
	var err error
	if a.target, err = aim(n.layout, ""); err != nil {
		return Adopted{}, err
	}
	if err := m.stays(a.target.Head); err != nil {
		return Adopted{}, err
	}
	a.old = a.target.Hash
	from, err := a.draw(ctx, tip.Pending)
	if err != nil {
		return Adopted{}, err
	}
	got, err := a.perform(ctx, from)
	if err != nil {
		return Adopted{}, err
	}
	for _, p := range a.alien {
		got.Warning = fmt.Sprintf("%s%s on %s changes what is a person's: look at it with git fetch %s %s%s, merge it or not, and "+
			"remove it", pendingRefs, p.ID, m.name, m.name, pendingRefs, p.ID)
	}
	a.report(ctx)
	return got, nil
}

// stays is an error where something else is checked out than when the remote was opened.
func (m *Remote) stays(head Head) error {
	if head.Ref == m.local {
		return nil
	}
	return &Conflict{What: fmt.Sprintf("%s is no longer what is checked out; switch back, or start anew",
		strings.TrimPrefix(m.local, "refs/heads/"))}
}

// owner says whose a path below the work tree is.
func (a *adoption) owner(path string) Ownership {
	if own, ok := strings.CutPrefix(path, a.m.repo.prefix); ok {
		return a.owners.Of(own)
	}
	return None
}

// draw decides where the branch goes, and what is to be kept, and returns the tree that it comes from.
func (a *adoption) draw(ctx context.Context, pendings []Pending) (from plumbing.Hash, err error) {
	if from, err = a.store.treeOf(a.old); err != nil {
		return from, err
	}
	a.line = line{commit: a.old, tree: from, keep: map[string]blob{}}
	if a.tip == "" { // the remote has no such branch yet
		a.people = a.old != ""
		return from, nil
	}
	r, err := a.relate(ctx)
	if err != nil {
		return from, err
	}
	if a.base = r.base; r.base == a.tip {
		a.people = slices.ContainsFunc(r.local, func(c commitText) bool { return !byReconcile(c) })
	} else {
		a.line.commit = a.tip
		if a.line.tree, err = a.store.treeOf(a.tip); err != nil {
			return from, err
		}
		if err := a.replay(ctx, r.local); err != nil {
			return from, err
		}
	}
	return from, a.gather(ctx, pendings)
}

// perform brings files, index and branch there.
func (a *adoption) perform(ctx context.Context, from plumbing.Hash) (got Adopted, err error) {
	edits, folders, err := a.store.difference(from, a.line.tree)
	if err != nil {
		return got, err
	}
	if len(edits) == 0 && len(a.line.keep) == 0 && a.line.commit == a.old {
		return got, nil
	}
	index, err := a.n.lockIndex(ctx, a.w)
	var pass *needsGit
	if errors.As(err, &pass) { // one that only git can write: it follows afterwards
		err = errors.Join(index.close(), a.askIndex(ctx, edits))
		index = nil
	} else if err == nil {
		a.index, a.written = index.now, index.written
	}
	defer func() { err = errors.Join(err, index.close()) }()
	if err != nil {
		return got, err
	}
	changes, err := a.sift(ctx, edits, a.line.keep)
	if err != nil {
		return got, err
	}
	staged, err := a.stage(ctx, changes)
	if err != nil {
		return got, err
	}
	defer staged.drop()
	if staged.joints, err = a.hold(ctx, changes); err != nil {
		return got, err
	}
	if err := a.advance(ctx, index, staged, edits, folders, &got); err != nil {
		return Adopted{}, err
	}
	got.Paths = a.below(staged.changed())
	got.Moved = a.line.commit != a.old || len(got.Paths) > 0
	return got, nil
}

// advance puts the files in place, and then the index and the branch. What it began it takes back when it fails.
func (a *adoption) advance(ctx context.Context, index *nextIndex, staged *staged, edits []edit, folders map[string]folderChange, got *Adopted) error {
	if a.line.commit == a.old {
		return staged.place() // records that others left
	}
	record := pending{GitDir: a.n.gitDir, Ref: a.target.Ref, Old: a.old, New: a.line.commit, Files: true}
	if err := a.w.write(a.n.layout, a.line.objects); err != nil {
		return err
	}
	if err := a.w.remember(true, record); err != nil {
		return err
	}
	err := staged.place()
	if err == nil {
		err = a.swing(ctx, index, staged, edits, folders, got)
	}
	if err != nil && !errors.Is(err, errAfter) {
		return errors.Join(err, a.n.takeBack(context.WithoutCancel(ctx), a.w, a.store, record)) // the record stays, for the index
	}
	return err
}

// swing moves the index and the branch.
func (a *adoption) swing(ctx context.Context, index *nextIndex, staged *staged, edits []edit, folders map[string]folderChange, got *Adopted) error {
	var late error = &needsGit{}
	if index != nil {
		late = index.fill(a.n, a.w, edits, folders, staged.stats())
	}
	_, committer, err := identities(ctx, a.cfg, "", a.m.now())
	if err != nil {
		return err
	}
	to := step{commit: a.line.commit, line: committer.String() + "\treconcile: adopt " + a.m.String(),
		log: a.cfg.flag(ctx, "core.logallrefupdates", true), first: func() {
			if late == nil {
				late = index.place()
			}
		}}
	if err := move(ctx, a.n.layout, a.w, a.target, to); err != nil {
		return err
	}
	if late != nil {
		err := index.close()
		if late = errors.Join(err, a.n.patchIndex(ctx, a.w, edits, folders, staged.stats())); late != nil {
			got.Warning = fmt.Sprintf("on top of %s, but the index has yet to follow: %v", a.m, late)
			return nil
		}
	}
	if err := a.w.forget(); err != nil {
		return fmt.Errorf("%w: %w", errAfter, err)
	}
	return nil
}

// below cuts the paths that are in the tree down to it, and leaves the others out.
func (a *adoption) below(paths []string) []string {
	var out []string
	for _, p := range paths {
		if own, ok := strings.CutPrefix(p, a.m.repo.prefix); ok {
			out = append(out, own)
		}
	}
	slices.Sort(out)
	return out
}

// report takes note of what the next push has to know, and lets git's own idea of the remote's branch follow, which
// may fail: it is for git status only.
func (a *adoption) report(ctx context.Context) {
	a.m.mu.Lock()
	a.m.people = a.people
	for ref, u := range a.united {
		a.m.united[ref] = u
	}
	for _, p := range a.alien {
		a.m.alien[p] = true
	}
	a.m.mu.Unlock()
	spec, ok := a.cfg.get(ctx, "remote."+a.m.name+".fetch")
	if tracking := "refs/remotes/" + a.m.name + "/"; ok && a.tip != "" && spec == "+refs/heads/*:"+tracking+"*" {
		ref := tracking + strings.TrimPrefix(a.m.ref, "refs/heads/")
		if now, err := resolveRef(a.n.layout, ref); err == nil && now != a.tip {
			_ = move(ctx, a.n.layout, a.w, target{Head: Head{Ref: ref, Hash: now}}, step{commit: a.tip})
		}
	}
}

// sameFile reports whether a file is still as it was when it was looked at.
func sameFile(root *os.Root, path string, st fileStat) bool {
	fi, err := root.Lstat(path)
	return err == nil && statOf(fi) == st || err != nil && st == fileStat{}
}

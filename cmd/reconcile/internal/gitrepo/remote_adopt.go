package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
	"reconcile.dev/reconcile/state/lock"
)

// Ownership defines what Adopt may do with a file.
type Ownership int

// The owners of a file.
const (
	// None is a person's file: it is never overwritten, and a commit that changes it is replayed, or in conflict.
	None Ownership = iota
	// Status is computed from other files: the remote's version wins, and local versions are dropped.
	Status
	// Record never changes once written: the remote's version wins if it exists, else the local one is kept.
	Record
	// Made is a file that the program made for people to edit, as it made it: where the remote has one too, that one wins.
	Made
	// Shared is a Status that third-party programs write, too: their changes are merged into the remote's version.
	Shared
)

// Owners defines what Adopt may do with the files below the directory given to Open, by relative path.
type Owners struct {
	Of func(path string) Ownership
	// Lock takes the lock that all writers of a Shared file take. It is held while the file is compared and replaced.
	Lock func(ctx context.Context, path string) (*lock.Lock, error)
	// Join returns the new content of a Shared file that Adopt replaces.
	Join func(path string, v Versions) ([]byte, error)
}

// Versions are the contents of a Shared file; nil if it does not exist.
type Versions struct {
	Base  []byte // in the common ancestor of the branches
	There []byte // in the work tree, under the lock
	Next  []byte // on the remote
}

// Adopted is the result of Adopt.
type Adopted struct {
	Moved bool     // the branch, or a file, changed
	Paths []string // the files that changed, below the directory given to Open, sorted
	// Warning is empty, or describes what needs a person: an index that has yet to follow, or a pending commit that
	// only a person can merge (once for each).
	Warning string
}

// Adopt moves the branch, the index and the work tree to the tip of the remote, and replays the user's local commits
// that the tip lacks, with author and message kept. Reconcile's own are dropped, except their records, which stay as
// files for the next commit. Records in pending commits of others are written as files, too. Files outside the
// directory given to Open are people's.
//
// Changes of the user, staged or not, are never touched: if the tip changes such a file, or a file that a local
// commit changed, the error is a *[Conflict] and nothing happens. If the process is killed, the next call of Adopt,
// Commit or Settle reverts the unfinished move. The error wraps [ErrBusy] while git is in the middle of an
// operation, or another process holds one of its locks.
func (m *Remote) Adopt(ctx context.Context, tip Tip, owners Owners) (got Adopted, err error) {
	n := m.repo.native.(*native)
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return Adopted{}, err
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
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
	if err = errors.Join(m.explainMissing(err), w.close()); err == nil && len(tip.Pending) > 0 {
		m.removeMerged(ctx, tip.Head) // references whose records are already on the branch
	}
	return got, err
}

// adoption is the state of one call of Adopt.
type adoption struct {
	checkout *checkout
	m        *Remote
	owners   Owners
	target   target
	old      string // the local branch's commit, or ""
	tip      string
	base     string // the common ancestor of branch and tip, or ""
	rebased  rebased
	people   bool
	merged   map[string]mergedPending // by full reference
	manual   []Pending                // pending commits that only a person can merge
}

func (m *Remote) adopt(ctx context.Context, n *native, cfg *gitConfig, w *scratchDir, tip Tip, owners Owners) (Adopted, error) {
	a := &adoption{checkout: newCheckout(ctx, n, cfg, w), m: m, owners: owners, tip: tip.Head, merged: map[string]mergedPending{}}
	a.checkout.owner = a.owner
	defer a.checkout.store.close()
	if err := n.catchUp(ctx, w, a.checkout.store); err != nil {
		return Adopted{}, err
	}
	if err := idleIndex(n.layout); err != nil {
		return Adopted{}, err
	}
	var err error
	if a.target, err = resolveTarget(n.layout, ""); err != nil {
		return Adopted{}, err
	}
	if err := m.checkHead(a.target.Head); err != nil {
		return Adopted{}, err
	}
	a.old = a.target.Hash
	from, err := a.plan(ctx, tip.Pending)
	if err != nil {
		return Adopted{}, err
	}
	got, err := a.perform(ctx, from)
	if err != nil {
		return Adopted{}, err
	}
	for _, p := range a.manual {
		got.Warning = fmt.Sprintf("%s%s on %s changes what is a person's: look at it with git fetch %s %s%s, merge it or not, and "+
			"remove it", pendingRefs, p.ID, m.name, m.name, pendingRefs, p.ID)
	}
	a.noteResult(ctx)
	return got, nil
}

// owner returns the owner of a path below the work tree.
func (a *adoption) owner(path string) Ownership {
	if own, ok := strings.CutPrefix(path, a.m.repo.prefix); ok {
		return a.owners.Of(own)
	}
	return None
}

// plan computes the new branch and the records to keep, and returns the current tree.
func (a *adoption) plan(ctx context.Context, pendings []Pending) (from plumbing.Hash, err error) {
	if from, err = a.checkout.store.treeOf(a.old); err != nil {
		return from, err
	}
	a.rebased = rebased{commit: a.old, tree: from, keep: map[string]blob{}}
	if a.tip == "" { // the remote has no such branch yet
		a.people = a.old != ""
		return from, nil
	}
	r, err := a.relate(ctx)
	if err != nil {
		return from, err
	}
	if a.base = r.base; r.base == a.tip {
		a.people = slices.ContainsFunc(r.local, func(c commitText) bool { return !message.ByReconcile(c.Message) })
	} else {
		a.rebased.commit = a.tip
		if a.rebased.tree, err = a.checkout.store.treeOf(a.tip); err != nil {
			return from, err
		}
		if err := a.replay(ctx, r.local); err != nil {
			return from, err
		}
	}
	return from, a.mergePending(ctx, pendings)
}

// perform updates files, index and branch.
func (a *adoption) perform(ctx context.Context, from plumbing.Hash) (got Adopted, err error) {
	edits, folders, err := a.checkout.store.difference(from, a.rebased.tree)
	if err != nil {
		return got, err
	}
	if len(edits) == 0 && len(a.rebased.keep) == 0 && a.rebased.commit == a.old {
		return got, nil
	}
	index, err := a.checkout.n.lockIndex(ctx, a.checkout.w)
	var pass *needsGit
	if errors.As(err, &pass) { // only git can write it: it follows afterwards
		err = errors.Join(index.close(), a.checkout.askIndex(ctx, edits))
		index = nil
	} else if err == nil {
		a.checkout.index, a.checkout.written = index.now, index.written
	}
	defer func() { err = errors.Join(err, index.close()) }()
	if err != nil {
		return got, err
	}
	changes, err := a.checkout.classify(ctx, edits, a.rebased.keep)
	if err != nil {
		return got, err
	}
	staged, err := a.checkout.stage(ctx, changes)
	if err != nil {
		return got, err
	}
	defer staged.drop()
	if staged.shared, err = a.lockShared(ctx, changes); err != nil {
		return got, err
	}
	if err := a.advance(ctx, index, staged, edits, folders, &got); err != nil {
		return Adopted{}, err
	}
	got.Paths = a.below(staged.changed())
	got.Moved = a.rebased.commit != a.old || len(got.Paths) > 0
	return got, nil
}

// advance puts the files in place, and then moves the index and the branch. On failure it reverts its changes.
func (a *adoption) advance(ctx context.Context, index *nextIndex, staged *staged, edits []edit, folders map[string]folderChange, got *Adopted) error {
	if a.rebased.commit == a.old {
		return staged.place() // pending records of others
	}
	record := pending{GitDir: a.checkout.n.gitDir, Ref: a.target.Ref, Old: a.old, New: a.rebased.commit, Files: true}
	if err := a.checkout.w.write(a.checkout.n.layout, a.rebased.objects); err != nil {
		return err
	}
	if err := a.checkout.w.recordPending(true, record); err != nil {
		return err
	}
	err := staged.place()
	if err == nil {
		err = a.moveIndexAndBranch(ctx, index, staged, edits, folders, got)
	}
	if err != nil && !errors.Is(err, errAfterMove) {
		return errors.Join(err, a.checkout.n.takeBack(context.WithoutCancel(ctx), a.checkout.w, a.checkout.store, record)) // the record stays, for the index
	}
	return err
}

// moveIndexAndBranch moves the index and the branch.
func (a *adoption) moveIndexAndBranch(ctx context.Context, index *nextIndex, staged *staged, edits []edit, folders map[string]folderChange, got *Adopted) error {
	var late error = &needsGit{}
	if index != nil {
		late = index.fill(a.checkout.n, a.checkout.w, edits, folders, staged.stats())
	}
	_, committer, err := identities(ctx, a.checkout.cfg, "", a.m.now())
	if err != nil {
		return err
	}
	to := refMove{commit: a.rebased.commit, line: committer.String() + "\treconcile: adopt " + a.m.String(),
		log: a.checkout.cfg.flag(ctx, "core.logallrefupdates", true), first: func() {
			if late == nil {
				late = index.place()
			}
		}}
	if err := moveRef(ctx, a.checkout.n.layout, a.checkout.w, a.target, to); err != nil {
		return err
	}
	if late != nil {
		err := index.close()
		if late = errors.Join(err, a.checkout.n.patchIndex(ctx, a.checkout.w, edits, folders, staged.stats())); late != nil {
			got.Warning = fmt.Sprintf("on top of %s, but the index has yet to follow: %v", a.m, late)
			return nil
		}
	}
	if err := a.checkout.w.clearPending(); err != nil {
		return fmt.Errorf("%w: %w", errAfterMove, err)
	}
	return nil
}

// below returns the paths inside the tree, relative to it.
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

// noteResult records state for the next push, and updates git's remote-tracking branch, which may fail: it serves
// only git status.
func (a *adoption) noteResult(ctx context.Context) {
	a.m.mu.Lock()
	a.m.people = a.people
	maps.Copy(a.m.merged, a.merged)
	for _, p := range a.manual {
		a.m.manual[p] = true
	}
	a.m.mu.Unlock()
	spec, ok := a.checkout.cfg.get(ctx, "remote."+a.m.name+".fetch")
	if tracking := "refs/remotes/" + a.m.name + "/"; ok && a.tip != "" && spec == "+refs/heads/*:"+tracking+"*" {
		ref := tracking + strings.TrimPrefix(a.m.ref, "refs/heads/")
		if now, err := resolveRef(a.checkout.n.layout, ref); err == nil && now != a.tip {
			_ = moveRef(ctx, a.checkout.n.layout, a.checkout.w, target{Head: Head{Ref: ref, Hash: now}}, refMove{commit: a.tip})
		}
	}
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

// relate computes the relation. A shallow clone is deepened once if it lacks the common ancestor.
func (a *adoption) relate(ctx context.Context) (relation, error) {
	if a.old == "" || a.old == a.tip {
		return relation{base: a.old}, nil
	}
	if r, ok := a.checkout.store.relateNear(a.old, a.tip); ok {
		return r, nil
	}
	base, err := a.m.git.word(ctx, "merge-base", a.old, a.tip)
	if err == nil && base == "" && a.m.repo.Shallow() {
		if err = a.m.deepen(ctx); err == nil {
			base, err = a.m.git.word(ctx, "merge-base", a.old, a.tip)
		}
	}
	if err != nil {
		return relation{}, err
	}
	if base == "" {
		what := "has no commit in common with this branch; look which of the two is the right one, and fetch it by hand"
		if a.m.repo.Shallow() {
			what = "has no commit in common with this shallow clone; run git fetch --unshallow, then run again"
		}
		return relation{}, &Conflict{What: a.m.String() + " " + what}
	}
	out, err := a.m.git.run(ctx, call{}, "rev-list", "--topo-order", "--reverse", a.tip+".."+a.old)
	r := relation{base: base}
	for hash := range strings.FieldsSeq(string(out)) {
		c, err := a.checkout.store.commit(hash)
		if err != nil {
			return r, err
		}
		r.local = append(r.local, c)
	}
	return r, err
}

// deepen fetches older commits into a shallow clone.
func (m *Remote) deepen(ctx context.Context) error {
	said, err := m.talk(ctx, false, nil, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--refmap=", "--deepen=200", "--", m.name, m.ref)
	if err != nil {
		return m.unreachable(ctx, said, err)
	}
	return nil
}

// mergePending reads the commits that others left, and keeps records that the rebased branch lacks. A commit that
// changes a person's file stays where it is.
func (a *adoption) mergePending(ctx context.Context, pendings []Pending) error {
	for _, p := range pendings {
		edits, err := a.pendingEdits(ctx, p.Commit)
		var missing *needsGit
		if errors.As(err, &missing) {
			continue // cut off by a shallow clone
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(edits, func(e edit) bool { is := a.owner(e.path); return is == None || is == Made }) {
			a.manual = append(a.manual, p)
			continue
		}
		u := mergedPending{commit: p.Commit}
		for _, e := range edits {
			if a.owner(e.path) == Record && e.now.mode != 0 {
				u.paths = append(u.paths, e.path)
				if at, err := a.checkout.store.file(a.rebased.tree, e.path); err != nil || at.mode != 0 {
					continue
				}
				if _, ours := a.rebased.keep[e.path]; !ours {
					a.rebased.keep[e.path] = e.now
				}
			}
		}
		a.merged[pendingRefs+p.ID] = u
	}
	return nil
}

// pendingEdits lists the changes of a pending commit since it left the branch.
func (a *adoption) pendingEdits(ctx context.Context, commit string) ([]edit, error) {
	base, err := a.m.git.word(ctx, "merge-base", commit, a.tip)
	var exit *exec.ExitError
	if errors.As(err, &exit) || err == nil && base == "" {
		return nil, &needsGit{"no common ancestor"}
	}
	if err != nil {
		return nil, err
	}
	was, err := a.checkout.store.treeOf(base)
	if err != nil {
		return nil, err
	}
	now, err := a.checkout.store.treeOf(commit)
	if err != nil {
		return nil, err
	}
	edits, _, err := a.checkout.store.difference(was, now)
	return edits, err
}

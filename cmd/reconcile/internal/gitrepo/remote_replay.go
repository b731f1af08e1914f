package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// near is the maximum distance of two branches whose common ancestor is found without git.
const near = 64

// relation relates the local branch to the tip.
type relation struct {
	base  string       // the common ancestor; "" if the local branch has no commit
	local []commitText // commits that the tip lacks, oldest first
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

// relateNear is relate for linear branches that are not far apart.
func (s *objectStore) relateNear(old, tip string) (relation, bool) {
	theirs := map[string]bool{}
	for at := tip; at != "" && len(theirs) < near; {
		theirs[at] = true
		if at == old {
			return relation{base: old}, true
		}
		c, err := s.commit(at)
		if err != nil || len(c.Parents) == 0 {
			break
		}
		at = c.Parents[0]
	}
	var r relation
	for at := old; len(r.local) < near; {
		if theirs[at] {
			r.base = at
			slices.Reverse(r.local)
			return r, true
		}
		c, err := s.commit(at)
		if err != nil || len(c.Parents) != 1 {
			break
		}
		r.local = append(r.local, c)
		at = c.Parents[0]
	}
	return r, false
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

// byReconcile reports whether reconcile made a commit: its message ends in the line that Message ends in.
func byReconcile(c commitText) bool {
	text := strings.TrimSpace(c.Message)
	return strings.HasPrefix(text[strings.LastIndexByte(text, '\n')+1:], "Reconcile-Objects: ")
}

// rebased is the new branch: the tip, and the commits replayed on it.
type rebased struct {
	commit  string
	tree    plumbing.Hash
	objects []object
	// keep are records that the tip lacks: path → the local branch's blob.
	keep map[string]blob
}

// replay applies the local commits to the tip. It replays the changes of people, path by path, and drops those of
// reconcile, except its records.
func (a *adoption) replay(ctx context.Context, local []commitText) error {
	for _, c := range local {
		if len(c.Parents) > 1 {
			return &Conflict{What: fmt.Sprintf("the local commit %.10s is a merge that %s lacks; push it yourself, or git rebase, "+
				"then run again", c.Hash, a.m)}
		}
		edits, err := a.changes(c)
		if err != nil {
			return err
		}
		people, err := a.splitEdits(edits, byReconcile(c))
		if err != nil {
			return err
		}
		if err := a.replayCommit(ctx, c, people); err != nil {
			return err
		}
	}
	return nil
}

// changes lists what a commit changed.
func (a *adoption) changes(c commitText) ([]edit, error) {
	var was plumbing.Hash
	if len(c.Parents) > 0 {
		var err error
		if was, err = a.checkout.store.treeOf(c.Parents[0]); err != nil {
			return nil, err
		}
	}
	edits, _, err := a.checkout.store.difference(was, plumbing.NewHash(c.Tree))
	return edits, err
}

// splitEdits collects records, and returns the edits of people to replay. A record that a person added, such as a
// spec created by a command, stays part of their commit. ours is set for commits of reconcile.
func (a *adoption) splitEdits(edits []edit, ours bool) (people []edit, err error) {
	var clash []string
	for _, e := range edits {
		owner := a.owner(e.path)
		if owner == Status || owner == Shared {
			continue
		}
		at, err := a.checkout.store.file(a.rebased.tree, e.path)
		switch {
		case err != nil:
			return nil, err
		case owner == Record:
			delete(a.rebased.keep, e.path)
			switch {
			case !ours && e.was.mode == 0 && at.mode == 0:
				people = append(people, e)
			case e.now.mode != 0:
				a.rebased.keep[e.path] = e.now
			}
		case at == e.now:
		case at != e.was:
			clash = append(clash, e.path)
		default:
			people = append(people, e)
		}
	}
	if len(clash) > 0 {
		return nil, &Conflict{Paths: clash, What: fmt.Sprintf("changed by a local commit and on %s; run git pull --rebase, "+
			"settle it, then run again; nothing was changed", a.m)}
	}
	return people, nil
}

// replayCommit makes the commit with the edits on top of the rebased branch.
func (a *adoption) replayCommit(ctx context.Context, c commitText, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	tree, trees, err := a.checkout.store.graft(a.rebased.tree, edits)
	if err != nil {
		return &Conflict{Paths: pathsOf(edits), What: fmt.Sprintf("the local commit %.10s does not fit on %s (%v); run git pull "+
			"--rebase, then run again; nothing was changed", c.Hash, a.m, err)}
	}
	o, err := a.recommit(ctx, c, tree)
	if err != nil {
		return err
	}
	a.people = true
	a.rebased.commit, a.rebased.tree = o.hash.String(), tree
	a.rebased.objects = append(append(a.rebased.objects, trees...), o)
	return nil
}

func pathsOf(edits []edit) []string {
	out := make([]string, len(edits))
	for i, e := range edits {
		out[i] = e.path
	}
	slices.Sort(out)
	return out
}

// recommit creates a commit object with author and message of c. The process that replays it is the committer, and
// signs it where commits are signed.
func (a *adoption) recommit(ctx context.Context, c commitText, tree plumbing.Hash) (object, error) {
	data, err := a.checkout.store.read(plumbing.CommitObject, plumbing.NewHash(c.Hash))
	if err != nil {
		return object{}, err
	}
	_, committer, err := identities(ctx, a.checkout.cfg, "", a.m.now())
	if err != nil {
		return object{}, err
	}
	head, body, _ := strings.Cut(string(data), "\n\n")
	text := fmt.Sprintf("tree %s\nparent %s\n", tree, a.rebased.commit)
	encoding := ""
	for l := range strings.SplitSeq(head, "\n") {
		switch {
		case strings.HasPrefix(l, "author "):
			text += l + "\n"
		case strings.HasPrefix(l, "encoding "):
			encoding = l + "\n"
		}
	}
	text += fmt.Sprintf("committer %s\n", committer)
	wanted, err := signs(ctx, a.checkout.cfg, "auto")
	if err != nil || !wanted {
		return newObject(plumbing.CommitObject, []byte(text+encoding+"\n"+body)), err
	}
	signature, err := sign(ctx, a.checkout.cfg, a.checkout.w, committer, []byte(text+encoding+"\n"+body))
	return newObject(plumbing.CommitObject, []byte(text+encoding+signatureHeader(signature)+"\n"+body)), err
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
		if slices.ContainsFunc(edits, func(e edit) bool { return a.owner(e.path) == None }) {
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

package gitrepo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
	"reconcile.dev/reconcile/schemas/treepath"
)

// near is the maximum distance of two branches whose common ancestor is found without git.
const near = 64

// relation relates the local branch to the tip.
type relation struct {
	base  string       // the common ancestor; "" if the local branch has no commit
	local []commitText // commits that the tip lacks, oldest first
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
		people, err := a.splitEdits(edits, message.ByReconcile(c.Message))
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

// splitEdits collects records, and returns the edits of people to replay, and the files that were made for them. A record that a person added, such as a
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
		case at == e.now, owner == Made && e.was.mode == 0 && at.mode != 0:
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

// checkTreePath refuses a path that a foreign tree must not contain.
func checkTreePath(p string) error {
	if owner := treepath.Of(p); owner == treepath.Outside || owner == treepath.Git {
		return &Conflict{Paths: []string{p}, What: "the remote has a path that reconcile does not check out; look who committed it"}
	}
	return nil
}

// holds reports whether a commit has all of the files.
func (s *objectStore) holds(commit string, paths []string) bool {
	root, err := s.treeOf(commit)
	if err != nil {
		return false
	}
	for _, p := range paths {
		if b, err := s.file(root, p); err != nil || b.mode == 0 {
			return false
		}
	}
	return true
}

// versions reads the files' contents in the common ancestor and on the remote.
func (a *adoption) versions(ctx context.Context, shared []fileChange) ([]Versions, error) {
	base, err := a.checkout.store.treeOf(a.base)
	if err != nil {
		return nil, err
	}
	content := func(b blob) ([]byte, error) {
		if b.mode == 0 {
			return nil, nil
		}
		return a.checkout.blob(ctx, b)
	}
	out := make([]Versions, len(shared))
	for i, c := range shared {
		was, err := a.checkout.store.file(base, c.path)
		if err != nil {
			return nil, err
		}
		if out[i].Base, err = content(was); err != nil {
			return nil, err
		}
		if out[i].Next, err = content(c.now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// splitFolder cuts off the leading edits below the folder name, and removes that name from their paths.
func splitFolder(edits []edit, name string) (below, rest []edit) {
	for len(edits) > 0 && strings.HasPrefix(edits[0].path, name+"/") {
		e := edits[0]
		e.path = e.path[len(name)+1:]
		below, edits = append(below, e), edits[1:]
	}
	return below, edits
}

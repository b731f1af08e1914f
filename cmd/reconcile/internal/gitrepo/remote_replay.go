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

// near is how far two branches may be apart for their common ancestor to be found without asking git.
const near = 64

// relation is how the local branch stands to the tip.
type relation struct {
	base  string       // the common ancestor; "" when the local branch has no commit
	local []commitText // what the tip lacks, oldest first
}

// relate finds it out. The clone may be shallow, and is deepened once if the common ancestor is not there.
func (a *adoption) relate(ctx context.Context) (relation, error) {
	if a.old == "" || a.old == a.tip {
		return relation{base: a.old}, nil
	}
	if r, ok := a.store.relateNear(a.old, a.tip); ok {
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
		c, err := a.store.commit(hash)
		if err != nil {
			return r, err
		}
		r.local = append(r.local, c)
	}
	return r, err
}

// relateNear does it for branches that are lines, and not far apart.
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

// deepen brings older commits into a shallow clone.
func (m *Remote) deepen(ctx context.Context) error {
	said, err := m.talk(ctx, false, nil, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--refmap=", "--deepen=200", "--", m.name, m.ref)
	if err != nil {
		return m.unreachable(ctx, said, err)
	}
	return nil
}

// byReconcile reports whether a commit was made by reconcile: its message ends in the line that Message ends in.
func byReconcile(c commitText) bool {
	text := strings.TrimSpace(c.Message)
	return strings.HasPrefix(text[strings.LastIndexByte(text, '\n')+1:], "Reconcile-Objects: ")
}

// line is a branch in the making: the tip, and what is replayed on it.
type line struct {
	commit  string
	tree    plumbing.Hash
	objects []object
	// keep are records that the tip lacks: path → what the local branch has there.
	keep map[string]blob
}

// replay puts the local commits on top of the tip. Of each, what is a person's is taken over, path by path, and what
// is reconcile's is not, but for its records.
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
		people, err := a.sortOut(edits, byReconcile(c))
		if err != nil {
			return err
		}
		if err := a.transplant(ctx, c, people); err != nil {
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
		if was, err = a.store.treeOf(c.Parents[0]); err != nil {
			return nil, err
		}
	}
	edits, _, err := a.store.difference(was, plumbing.NewHash(c.Tree))
	return edits, err
}

// sortOut takes note of records, and returns the edits of people that are to be made again. A record that a person added,
// such as the spec of what they asked for by a command, stays part of their commit. ours tells commits of reconcile.
func (a *adoption) sortOut(edits []edit, ours bool) (people []edit, err error) {
	var clash []string
	for _, e := range edits {
		owner := a.owner(e.path)
		if owner == Status || owner == Shared {
			continue
		}
		at, err := a.store.file(a.line.tree, e.path)
		switch {
		case err != nil:
			return nil, err
		case owner == Record:
			delete(a.line.keep, e.path)
			switch {
			case !ours && e.was.mode == 0 && at.mode == 0:
				people = append(people, e)
			case e.now.mode != 0:
				a.line.keep[e.path] = e.now
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

// transplant makes the commit again with the edits, on top of the line.
func (a *adoption) transplant(ctx context.Context, c commitText, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	tree, trees, err := a.store.graft(a.line.tree, edits)
	if err != nil {
		return &Conflict{Paths: pathsOf(edits), What: fmt.Sprintf("the local commit %.10s does not fit on %s (%v); run git pull "+
			"--rebase, then run again; nothing was changed", c.Hash, a.m, err)}
	}
	o, err := a.again(ctx, c, tree)
	if err != nil {
		return err
	}
	a.people = true
	a.line.commit, a.line.tree = o.hash.String(), tree
	a.line.objects = append(append(a.line.objects, trees...), o)
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

// again makes a commit object with author and message of c. Who replays it is the committer, and signs it where
// commits are signed.
func (a *adoption) again(ctx context.Context, c commitText, tree plumbing.Hash) (object, error) {
	data, err := a.store.read(plumbing.CommitObject, plumbing.NewHash(c.Hash))
	if err != nil {
		return object{}, err
	}
	_, committer, err := identities(ctx, a.cfg, "", a.m.now())
	if err != nil {
		return object{}, err
	}
	head, body, _ := strings.Cut(string(data), "\n\n")
	text := fmt.Sprintf("tree %s\nparent %s\n", tree, a.line.commit)
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
	wanted, err := signs(ctx, a.cfg, "auto")
	if err != nil || !wanted {
		return newObject(plumbing.CommitObject, []byte(text+encoding+"\n"+body)), err
	}
	signature, err := sign(ctx, a.cfg, a.w, committer, []byte(text+encoding+"\n"+body))
	return newObject(plumbing.CommitObject, []byte(text+encoding+signatureHeader(signature)+"\n"+body)), err
}

// gather looks through the commits that others left: records that the line lacks are kept. One that changes what is a
// person's is left where it is.
func (a *adoption) gather(ctx context.Context, pendings []Pending) error {
	for _, p := range pendings {
		edits, err := a.left(ctx, p.Commit)
		var missing *needsGit
		if errors.As(err, &missing) {
			continue // cut off by a shallow clone
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(edits, func(e edit) bool { return a.owner(e.path) == None }) {
			a.alien = append(a.alien, p)
			continue
		}
		u := united{commit: p.Commit}
		for _, e := range edits {
			if a.owner(e.path) == Record && e.now.mode != 0 {
				u.paths = append(u.paths, e.path)
				if at, err := a.store.file(a.line.tree, e.path); err != nil || at.mode != 0 {
					continue
				}
				if _, ours := a.line.keep[e.path]; !ours {
					a.line.keep[e.path] = e.now
				}
			}
		}
		a.united[pendingRefs+p.ID] = u
	}
	return nil
}

// left lists what a pending commit changed since it left the branch.
func (a *adoption) left(ctx context.Context, commit string) ([]edit, error) {
	base, err := a.m.git.word(ctx, "merge-base", commit, a.tip)
	var exit *exec.ExitError
	if errors.As(err, &exit) || err == nil && base == "" {
		return nil, &needsGit{"no common ancestor"}
	}
	if err != nil {
		return nil, err
	}
	was, err := a.store.treeOf(base)
	if err != nil {
		return nil, err
	}
	now, err := a.store.treeOf(commit)
	if err != nil {
		return nil, err
	}
	edits, _, err := a.store.difference(was, now)
	return edits, err
}

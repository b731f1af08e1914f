package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Patch is the difference between local commits and the tip, for callers that create a commit from it without a
// push.
type Patch struct {
	Branch         string   // of the remote, without refs/heads/
	Base           string   // the commit that the branch must be at
	Headline, Body string   // the message of the last of the commits, as its first line and what follows
	Write          []Stored // with paths below the top of the work tree
	Delete         []string // likewise
}

// patchLimit is the most content that a patch may have, in bytes.
const patchLimit = 40 << 20

// Patch combines the changes of the commits between the tip and a commit into one patch, on the branch and the base of
// the tip. All of them must be reconcile's own: other commits would lose their author. The error is ErrRefused if
// commit is not based on the tip.
func (m *Remote) Patch(ctx context.Context, tip Tip, commit string) (Patch, error) {
	p := Patch{Branch: strings.TrimPrefix(m.ref, "refs/heads/"), Base: tip.Head}
	if tip.Head == "" {
		return p, fmt.Errorf("%s: the remote has no such branch yet; push it once with git push", m)
	}
	stands, err := m.has(ctx, commit, tip.Head)
	if err == nil && !stands {
		err = fmt.Errorf("%s: %w", m, ErrRefused)
	}
	if err != nil {
		return p, err
	}
	store := newObjectStore(m.repo.layout)
	defer store.close()
	for at := commit; at != tip.Head; {
		c, err := store.commit(at)
		if err != nil {
			return p, err
		}
		switch {
		case !byReconcile(c):
			return p, fmt.Errorf("%s: commit %.10s (%s) is not reconcile's own, and only a push keeps its author; push it, or "+
				"open a pull request with it", m, at, clipMessage(firstLine(c.Message), 60))
		case len(c.Parents) != 1:
			return p, fmt.Errorf("%s: commit %.10s is a merge, and GitHub makes none; push it", m, at)
		case at == commit:
			p.Headline, p.Body, _ = strings.Cut(strings.TrimSpace(c.Message), "\n")
			p.Body = strings.TrimSpace(p.Body)
		}
		at = c.Parents[0]
	}
	return p, p.fill(store, commit)
}

// fill adds the files that differ between the base and a commit.
func (p *Patch) fill(store *objectStore, commit string) error {
	was, err := store.treeOf(p.Base)
	if err != nil {
		return err
	}
	now, err := store.treeOf(commit)
	if err != nil {
		return err
	}
	edits, _, err := store.difference(was, now)
	size := 0
	for _, e := range edits {
		if e.now.mode == 0 {
			p.Delete = append(p.Delete, e.path)
			continue
		}
		if e.now.mode != modeFile {
			return fmt.Errorf("%s: it is no plain file, and GitHub makes commits of such only; push the commit", e.path)
		}
		data, err := store.read(plumbing.BlobObject, e.now.hash)
		if err != nil {
			return err
		}
		if size += len(data); size > patchLimit {
			return fmt.Errorf("commit %.10s changes more than %d MiB, too much for GitHub to make a commit of; push it", commit, patchLimit>>20)
		}
		p.Write = append(p.Write, Stored{Path: e.path, Data: data})
	}
	return err
}

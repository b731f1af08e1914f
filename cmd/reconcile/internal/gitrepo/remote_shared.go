package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

// sharedFile is a Shared file before its replacement. Its lock is held.
type sharedFile struct {
	path  string // below the work tree
	lock  *lock.Lock
	there []byte
	next  []byte // the remote's content
	data  []byte // the new content
}

// sharedFiles are sorted by path.
type sharedFiles []*sharedFile

// lockShared locks the Shared files among the changes, and computes their new contents. All slow work is done
// before: other writers wait from now until place.
func (a *adoption) lockShared(ctx context.Context, changes []fileChange) (_ sharedFiles, err error) {
	var shared []fileChange
	for _, c := range changes {
		if c.shared {
			shared = append(shared, c)
		}
	}
	if len(shared) == 0 {
		return nil, nil
	}
	slices.SortFunc(shared, func(a, b fileChange) int { return strings.Compare(a.path, b.path) })
	versions, err := a.versions(ctx, shared)
	if err != nil {
		return nil, err
	}
	var held sharedFiles
	defer func() {
		if err != nil {
			held.release()
		}
	}()
	for i, c := range shared {
		own := strings.TrimPrefix(c.path, a.m.repo.prefix)
		j := &sharedFile{path: c.path, next: versions[i].Next}
		if j.lock, err = a.owners.Lock(ctx, own); err != nil {
			return nil, err
		}
		held = append(held, j)
		if j.there, err = j.lock.Read(); err != nil {
			return nil, err
		}
		versions[i].There = j.there
		if j.data, err = a.owners.Join(own, versions[i]); err != nil {
			return nil, fmt.Errorf("%s: unite what is there with what %s has: %w", c.path, a.m, err)
		}
	}
	return held, nil
}

// place replaces the files, if no other process intervened, and releases the locks.
func (all sharedFiles) place(root *os.Root, scratch string) error {
	var ops []durable.Op
	for _, j := range all {
		if err := j.lock.Check(); errors.Is(err, lock.ErrStolen) {
			return fmt.Errorf("%w: %w", errMoved, err)
		} else if err != nil {
			return err
		}
		if !same(j.there, j.data) {
			ops = append(ops, durable.Op{Path: j.path, Data: j.data})
		}
	}
	if err := durable.Apply(root, scratch, ops); err != nil {
		return err
	}
	all.release()
	return nil
}

// release releases the locks that are still held. Check already reported a stolen lock.
func (all sharedFiles) release() {
	for _, j := range all {
		_ = j.lock.Release()
	}
}

// differ reports whether a file's content differs from the remote's.
func (all sharedFiles) differ(path string) bool {
	return slices.ContainsFunc(all, func(j *sharedFile) bool { return j.path == path && !same(j.data, j.next) })
}

package memstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

// tmpDir is the folder of temporary files.
const tmpDir = ".reconcile/tmp"

// folding computes the files of an issue from their present contents. It may be called several times.
type folding func(file, archive []byte) (memory.Folded, error)

// steals is how often a fold is retried after another program took the lock or wrote without it.
const steals = 5

// change changes the files of an issue under the issue's lock, durably. wrote is false if they are unchanged. first, which
// may be nil, runs first: the files change after it returned, and not at all if it fails, but they are written under
// temporary names meanwhile.
func (f *Files) change(ctx context.Context, issue int, first func() error, fold folding) (out memory.Folded, wrote bool, err error) {
	for range steals {
		var now bool
		out, now, err = f.changeOnce(ctx, issue, first, fold)
		wrote = wrote || now
		if !errors.Is(err, lock.ErrStolen) {
			break
		}
		f.forgetView() // another program may have written since
	}
	return out, wrote, lostIsBusy(err)
}

func (f *Files) changeOnce(ctx context.Context, issue int, first func() error, fold folding) (out memory.Folded, wrote bool, err error) {
	l, err := f.store.LockFile(ctx, f.issuePath(issue))
	if err != nil {
		return out, false, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	file, err := l.Read()
	if err != nil {
		return out, false, err
	}
	archive, err := f.readOrNil(f.archivePath(issue))
	if err != nil {
		return out, false, err
	}
	if out, err = fold(file, archive); err != nil {
		return out, false, fmt.Errorf("fold %s: %w", f.issuePath(issue), err)
	}
	ops := f.changes(issue, file, archive, &out)
	if len(ops) == 0 {
		return out, false, nil
	}
	staged, err := durable.StageAll(f.store.Root(), tmpDir, ops)
	if err != nil {
		return out, false, err
	}
	defer staged.Discard()
	if first != nil {
		err = first()
	}
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return out, false, err
	}
	f.writes.Add(int64(len(ops)))
	if err := staged.Commit(); err != nil {
		return out, true, err
	}
	f.wrote(issue, out.File) // under the lock: what others of this process write comes later
	return out, true, nil
}

// changes returns the files to write. An observation that moves from one file to the other is in both for a moment rather
// than in neither: additions to the archive are written first, and removals from it last.
func (f *Files) changes(issue int, file, archive []byte, out *memory.Folded) []durable.Op {
	var ops []durable.Op
	if !sameManifest(archive, out.Archive) {
		ops = append(ops, durable.Op{Path: f.archivePath(issue), Data: out.Archive, Stop: f.dir()})
	}
	if !sameManifest(file, out.File) {
		ops = append(ops, durable.Op{Path: f.issuePath(issue), Data: out.File})
	}
	if len(ops) > 1 && losesAny(archive, out.Archived) {
		slices.Reverse(ops)
	}
	return ops
}

// losesAny reports whether an archive has an observation that next lacks.
func losesAny(archive []byte, next []schemas.Observation) bool {
	was, err := memory.Parse(archive)
	if archive == nil || err != nil {
		return false
	}
	return slices.ContainsFunc(was.Observations, func(o schemas.Observation) bool {
		return !slices.ContainsFunc(next, func(n schemas.Observation) bool { return n.ID == o.ID })
	})
}

// lostIsBusy returns a lost lock, stolen by another process or expired because the clock jumped, as a busy lock: the
// operation can be retried later.
func lostIsBusy(err error) error {
	if errors.Is(err, state.ErrStolen) && !errors.Is(err, state.ErrBusy) {
		return fmt.Errorf("%w: %w; run the command again", state.ErrBusy, err)
	}
	return err
}

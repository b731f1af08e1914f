package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// Remove implements [Store]. A record of the removal keeps later folds from restoring it.
func (f *Files) Remove(ctx context.Context, ids []string, by, reason string) error {
	found, err := f.all(ctx, ids)
	if err != nil {
		return err
	}
	return f.note(ctx, found, func(issue int, all []schemas.Observation) schemas.MemoryRecord {
		return schemas.MemoryRecord{Type: schemas.RecordRemoved, By: by, Reason: reason}
	})
}

// Verify implements [Store].
func (f *Files) Verify(ctx context.Context, ids []string, by string) error {
	found, err := f.all(ctx, ids)
	if err != nil {
		return err
	}
	defer f.anchors.save()
	return f.note(ctx, found, func(issue int, all []schemas.Observation) schemas.MemoryRecord {
		r := schemas.MemoryRecord{Type: schemas.RecordVerified, By: by, Anchors: map[string][]schemas.Anchor{}}
		for _, o := range all {
			anchors := make([]schemas.Anchor, len(o.Anchors))
			for i, a := range o.Anchors {
				anchors[i] = schemas.Anchor{Path: a.Path, Digest: f.Digest(a.Path)}
			}
			r.Anchors[o.ID] = anchors
		}
		return r
	})
}

// note writes one record for each issue, and applies it.
func (f *Files) note(ctx context.Context, found map[int][]schemas.Observation,
	say func(int, []schemas.Observation) schemas.MemoryRecord) error {
	issues := map[int]bool{}
	for _, issue := range slices.Sorted(maps.Keys(found)) {
		r := say(issue, found[issue])
		r.Issue, r.At = issue, schemas.StampOfTime(f.o.Now())
		for _, o := range found[issue] {
			r.IDs = append(r.IDs, o.ID)
		}
		if _, err := f.record(r, true); err != nil {
			return err
		}
		issues[issue] = true
	}
	return f.refold(ctx, issues)
}

// refold applies just written records. If that fails, the records stay, and the next run applies them.
func (f *Files) refold(ctx context.Context, issues map[int]bool) error {
	facts, err := f.facts()
	if err == nil {
		err = f.refoldWith(ctx, facts, issues)
	}
	if err != nil {
		return fmt.Errorf("%w; it is on record, and the next run of reconcile puts it into effect", err)
	}
	return nil
}

func (f *Files) refoldWith(ctx context.Context, facts *memory.Facts, issues map[int]bool) (err error) {
	folded := map[int]bool{}
	for i, issue := range slices.Sorted(maps.Keys(issues)) {
		f.doing("fold the memory", i, len(issues))
		_, _, err = f.change(ctx, issue, nil, func(file, archive []byte) (memory.Folded, error) {
			return facts.Fold(issue, file, archive)
		})
		if err != nil {
			break
		}
		folded[issue] = true
	}
	if len(folded) == 0 {
		return err
	}
	return errors.Join(err, f.updateManifest(ctx, folded), f.store.Announce())
}

func badID(id string) error {
	return fmt.Errorf("%w: %.150q is not the id of an observation, obs-<agent>-<issue>-<ms>-<6 characters>; "+
		"reconcile memory list shows the ids", ErrInvalid, id)
}

func checkIssue(issue int) error {
	if issue < 0 || issue > 1<<31-1 {
		return fmt.Errorf("%w: %d is not the number of an issue", ErrInvalid, issue)
	}
	return nil
}

package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
)

// Compact implements [Store]. ErrNothing reports that there is nothing to merge.
func (f *Files) Compact(ctx context.Context, issue int) (Compacted, error) {
	if err := checkIssue(issue); err != nil {
		return Compacted{}, err
	}
	done, err := f.compactAll(ctx, []int{issue})
	if err == nil && len(done) == 0 {
		err = fmt.Errorf("%w: issue %d has nothing to merge that would have fewer tokens than before", ErrNothing, issue)
	}
	if err != nil {
		return Compacted{}, err
	}
	return done[0], nil
}

// compactAll compacts those of the issues that have something to merge. All records are written before the first file
// changes, and the manifest is changed once.
func (f *Files) compactAll(ctx context.Context, issues []int) ([]Compacted, error) {
	facts, err := f.facts()
	if err != nil {
		return nil, err
	}
	var out []Compacted
	for i, issue := range issues {
		f.doing("compact the memory", i, len(issues))
		fold := func(file, archive []byte) (memory.Folded, error) { return facts.Fold(issue, file, archive) }
		before, _, err := f.asItIs(issue, fold)
		if err != nil {
			return nil, err
		}
		r, ok := facts.Shorten(&before)
		if !ok {
			continue
		}
		name, err := f.record(r, true)
		if err != nil {
			return nil, err
		}
		out = append(out, Compacted{Issue: issue, Before: len(before.Observations), Record: name})
	}
	return out, f.regroup(ctx, out)
}

// asItIs folds an issue without a lock; settled is set if nothing changes.
func (f *Files) asItIs(issue int, fold folding) (out memory.Folded, settled bool, err error) {
	file, err := f.readOrNil(f.issuePath(issue))
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
	return out, sameManifest(file, out.File) && sameManifest(archive, out.Archive), nil
}

// Undo implements [Store]. ErrNothing reports that the issue has no compaction in force.
func (f *Files) Undo(ctx context.Context, issue int) (Compacted, error) {
	if err := checkIssue(issue); err != nil {
		return Compacted{}, err
	}
	facts, err := f.facts()
	if err != nil {
		return Compacted{}, err
	}
	before, err := f.ByIssue(ctx, issue)
	if err != nil {
		return Compacted{}, err
	}
	r, ok := facts.Undo(issue, schemas.StampOfTime(f.o.Now()), "", "")
	if !ok {
		return Compacted{}, fmt.Errorf("%w: no compaction of issue %d is in force", ErrNothing, issue)
	}
	name, err := f.record(r, true)
	if err != nil {
		return Compacted{}, err
	}
	out := []Compacted{{Issue: issue, Before: len(before), Record: name}}
	err = f.regroup(ctx, out)
	return out[0], err
}

// regroup applies recorded compactions, or their undoing, and counts the results.
func (f *Files) regroup(ctx context.Context, out []Compacted) error {
	if len(out) == 0 {
		return nil
	}
	issues := map[int]bool{}
	for _, c := range out {
		issues[c.Issue] = true
	}
	if err := f.refold(ctx, issues); err != nil {
		return err
	}
	for i := range out {
		c := &out[i]
		after, err := f.ByIssue(ctx, c.Issue)
		if err != nil {
			return err
		}
		archived, err := f.readIssue(f.archivePath(c.Issue), c.Issue)
		if err != nil {
			return err
		}
		c.After, c.Archived = len(after), len(archived.Observations)
	}
	return nil
}

// CompactDue compacts the issues without new or verified observations for memory.compactAfterDays.
func (f *Files) CompactDue(ctx context.Context) ([]Compacted, error) {
	settings := f.settings().Memory
	if !*settings.Enabled || *settings.CompactAfterDays == 0 || !f.store.HasMemory() {
		return nil, nil
	}
	v, err := f.recent(false)
	if err != nil {
		return nil, err
	}
	heads, err := f.heads(v)
	if err != nil {
		return nil, err
	}
	spared := f.loadSpared()
	due := slices.DeleteFunc(memory.Due(heads, f.o.Now(), *settings.CompactAfterDays), func(issue int) bool {
		hash, ok := spared[issue]
		return ok && hash == v.owners[issue].hash
	})
	if len(due) == 0 {
		return nil, nil
	}
	done, err := f.compactAll(ctx, due)
	if err == nil {
		f.saveSpared(v, spared, due, done)
	}
	return done, err
}

// saveSpared adds the due issues that had nothing to merge, and drops outdated entries.
func (f *Files) saveSpared(v *memoryView, spared map[int]uint64, due []int, done []Compacted) {
	if f.o.NoCache {
		return
	}
	for _, issue := range due {
		if !slices.ContainsFunc(done, func(c Compacted) bool { return c.Issue == issue }) {
			spared[issue] = v.owners[issue].hash
		}
	}
	maps.DeleteFunc(spared, func(issue int, hash uint64) bool { return v.owners[issue].hash != hash })
	var e sections.Encoder
	encodeHashes(&e, spared)
	_ = f.saveValues(sparedPath, e.B)
}

// loadSpared reads the issues that have nothing to merge, with the hashes of their files.
func (f *Files) loadSpared() map[int]uint64 {
	d := f.loadValues(sparedPath)
	if out := decodeSettledHashes(&d); !d.Bad {
		return out
	}
	return map[int]uint64{}
}

// heads returns, for each issue, what decides whether it is due.
func (f *Files) heads(v *memoryView) ([]memory.Head, error) {
	names, err := f.recordNames()
	if err != nil {
		return nil, err
	}
	when := undoneUnits(names)
	heads := make([]memory.Head, 0, len(v.owners))
	for issue := range v.owners {
		h := memory.Head{Issue: issue}
		newest := int64(-1 << 62)
		v.eachOf(issue, func(_ place, r row) bool {
			newest = max(newest, r.ms, r.verified)
			if !r.merged && !r.superseded {
				h.Fresh++
			}
			return true
		})
		if h.Fresh == 0 {
			continue
		}
		if h.Newest = stampOf(newest); when[issue] != 0 {
			h.Undone = stampOf(when[issue])
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// undoneUnits returns, by the names of records, when a compaction of an issue was last undone.
func undoneUnits(names map[string]state.Identity) map[int]int64 {
	out := map[int]int64{}
	for name := range names {
		rest, ok := strings.CutPrefix(name, schemas.RecordUncompacted+"-")
		parts := strings.Split(rest, "-")
		if !ok || len(parts) != 3 {
			continue
		}
		issue, err := strconv.Atoi(parts[0])
		ms, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err == nil && err2 == nil {
			out[issue] = max(out[issue], ms)
		}
	}
	return out
}

// issuesOf groups ids by issue; ErrInvalid if one is malformed.
func issuesOf(ids []string) (map[int][]string, error) {
	out := map[int][]string{}
	for _, id := range ids {
		_, issue, _, ok := memory.ParseID(id)
		if !ok {
			return nil, badID(id)
		}
		out[issue] = append(out[issue], id)
	}
	return out, nil
}

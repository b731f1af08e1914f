package memstore

import (
	"context"
	"errors"

	"reconcile.dev/reconcile/schemas"
)

// Stats implements [Store]. The statistics cover the issue files; archived observations are counted separately.
func (f *Files) Stats(ctx context.Context) (schemas.MemoryStats, error) {
	out := schemas.MemoryStats{ByCategory: map[string]int{}, ByAgent: map[string]int{}}
	v, err := f.current()
	if err != nil {
		return out, err
	}
	f.checkManifest(ctx, v)
	oldest, newest := int64(1<<62), int64(-1<<62)
	for _, issue := range v.issues() {
		if v.owners[issue].rows > 0 {
			out.IssueCount++
		}
	}
	v.each(func(at place, r row) bool {
		out.TotalObservations++
		out.TotalTokens += r.tokens
		out.ByCategory[v.category(at, r)]++
		out.ByAgent[v.agent(at, r)]++
		if r.superseded {
			out.Superseded++
		}
		oldest, newest = min(oldest, r.ms), max(newest, r.ms)
		return true
	})
	if out.TotalObservations > 0 {
		out.OldestTimestamp, out.NewestTimestamp = stampOf(oldest), stampOf(newest)
	}
	for issue := range f.archives() {
		if m, err := f.readIssue(f.archivePath(issue), issue); err == nil {
			out.Archived += len(m.Observations)
		}
	}
	records, err := f.recordNames()
	for _, id := range records {
		out.DiskBytes += id.Size
	}
	out.Recalls = f.recallCount(records)
	out.DiskBytes += f.size(v)
	return out, errors.Join(err, ctx.Err())
}

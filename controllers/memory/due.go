package memory

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Head says of an issue what decides whether it is due for compaction.
type Head struct {
	Issue int
	// Fresh is how many observations are neither merged nor superseded.
	Fresh int
	// Newest is the newest time of a capture or verification, Undone when a compaction was undone last.
	Newest, Undone schemas.Stamp
}

// Due lists the issues to compact, sorted: those with two fresh observations and more that nothing touched for so many
// days; none for 0 days. What a person undid is not compacted again until something new was learned.
func Due(heads []Head, now time.Time, days int) (issues []int) {
	if days <= 0 {
		return nil
	}
	limit := now.Add(-time.Duration(days) * 24 * time.Hour)
	for _, h := range heads {
		untouched := h.Newest.Before(limit) && (h.Undone.IsZero() || h.Undone.Before(h.Newest.Time))
		if h.Fresh >= 2 && untouched {
			issues = append(issues, h.Issue)
		}
	}
	slices.Sort(issues)
	return issues
}

package controllers

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// historyBuilder collects history entries. The result is the newest HistoryLimit of the union of the old entries and
// those of the records, so it does not depend on the number of turns, nor on pruning.
type historyBuilder struct {
	old   []schemas.HistoryEntry
	fresh []schemas.HistoryEntry
}

// admits reports whether an entry of that time could be among the newest.
func (c *historyBuilder) admits(at schemas.Time) bool {
	return len(c.old) < schemas.HistoryLimit || !at.Before(c.old[0].At.Time)
}

func (c *historyBuilder) add(at schemas.Time, reason, message string) {
	if c.admits(at) {
		c.fresh = append(c.fresh, schemas.HistoryEntry{At: at, Reason: reason, Message: message})
	}
}

// entries returns the history. It returns the old slice itself where nothing is new.
func (c *historyBuilder) entries() []schemas.HistoryEntry {
	if !slices.ContainsFunc(c.fresh, func(e schemas.HistoryEntry) bool { return !slices.Contains(c.old, e) }) {
		if c.old == nil {
			return []schemas.HistoryEntry{}
		}
		return c.old
	}
	all := slices.Concat(c.old, c.fresh)
	slices.SortFunc(all, compareHistory)
	all = slices.Compact(all)
	return slices.Clone(all[max(0, len(all)-schemas.HistoryLimit):])
}

func compareHistory(a, b schemas.HistoryEntry) int {
	if c := a.At.Compare(b.At.Time); c != 0 {
		return c
	}
	if c := strings.Compare(a.Reason, b.Reason); c != 0 {
		return c
	}
	return strings.Compare(a.Message, b.Message)
}

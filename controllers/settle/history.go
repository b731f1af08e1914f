package settle

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// History collects history entries. The result is the newest HistoryLimit of the union of the old entries and
// those of the records, so it does not depend on the number of turns, nor on pruning.
type History struct {
	Old   []schemas.HistoryEntry
	fresh []schemas.HistoryEntry
}

// Admits reports whether an entry of that time could be among the newest.
func (c *History) Admits(at schemas.Time) bool {
	return len(c.Old) < schemas.HistoryLimit || !at.Before(c.Old[0].At.Time)
}

// Add adds an entry, unless it is too old to be among the newest.
func (c *History) Add(at schemas.Time, reason, message string) {
	if c.Admits(at) {
		c.fresh = append(c.fresh, schemas.HistoryEntry{At: at, Reason: reason, Message: message})
	}
}

// Entries returns the history. It returns the old slice itself where nothing is new.
func (c *History) Entries() []schemas.HistoryEntry {
	if !slices.ContainsFunc(c.fresh, func(e schemas.HistoryEntry) bool { return !slices.Contains(c.Old, e) }) {
		if c.Old == nil {
			return []schemas.HistoryEntry{}
		}
		return c.Old
	}
	all := slices.Concat(c.Old, c.fresh)
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

// AddRun adds the line of a finished run, after the given words. A line that the history has in its former wording stays.
func (c *History) AddRun(words string, r *schemas.Run) {
	if !c.Admits(r.FinishedAt) {
		return
	}
	message := words + runMessage(r, endOf(r))
	if former := words + runMessage(r, outcomeWords[r.Outcome]); former != message &&
		slices.Contains(c.Old, schemas.HistoryEntry{At: r.FinishedAt, Reason: r.Outcome, Message: former}) {
		message = former
	}
	c.Add(r.FinishedAt, r.Outcome, message)
}

// endOf says how a run ended. A verification that came to its end may have found anything; its message says what.
func endOf(r *schemas.Run) string {
	if r.Verifies != "" && r.Outcome == schemas.OutcomeSucceeded {
		return "ended"
	}
	return outcomeWords[r.Outcome]
}

// runMessage is the history's line for a finished run, which has ended in the given words.
func runMessage(r *schemas.Run, end string) string {
	msg := r.Node + " " + end
	if !r.StartedAt.IsZero() && !r.FinishedAt.IsZero() {
		msg += " after " + r.FinishedAt.Sub(r.StartedAt.Time).String()
	}
	if r.Message != "" {
		msg += ": " + r.Message
	}
	return msg
}

var outcomeWords = map[string]string{
	schemas.OutcomeSucceeded: "succeeded", schemas.OutcomeFailed: "failed", schemas.OutcomeTimedOut: "timed out",
	schemas.OutcomeCancelled: "was cancelled", schemas.OutcomeAsked: "asked", schemas.OutcomeHandedOff: "handed off",
	schemas.OutcomeNotPermitted: "waits for a permission", schemas.OutcomeInterrupted: "was interrupted",
}

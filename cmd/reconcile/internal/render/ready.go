package render

import (
	"cmp"
	"io"
	"time"

	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
)

// ReadyTable writes a table of ready items, a row for each, with its issue, session, priority and agent. With explain
// it adds each item's reason, the time of the next check, and its claim.
func ReadyTable(w io.Writer, p Palette, items []work.Item, explain bool, now time.Time) error {
	heads := []string{"ITEM", "ISSUE", "SESSION", "PRIORITY", "AGENT"}
	if explain {
		heads = append(heads, "REASON", "AGAIN", "CLAIMED")
	}
	t := NewTable(p, append(heads, "WHAT")...)
	for i := range items {
		it := &items[i]
		cells := []Cell{{Text: it.Name}, {Text: issueNumber(it.Issue)}, {Text: cmp.Or(it.Session, none)},
			{Text: string(it.Priority)}, {Text: cmp.Or(it.Agent, none)}}
		if explain {
			cells = append(cells, Cell{Text: it.Reason}, Cell{Text: waitUntilReady(it.Again, now)}, Cell{Text: readyClaim(it.Claim, now)})
		}
		t.Cells(append(cells, readyTask(it, explain))...)
	}
	return t.Write(w)
}

// waitUntilReady returns the time until an item is checked again without a change.
func waitUntilReady(at schemas.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return none
	case !at.After(now):
		return "now"
	}
	return "in " + Age(at.Sub(now))
}

func readyClaim(c *work.ItemClaim, now time.Time) string {
	if c == nil {
		return none
	}
	return c.By + ", " + ageOf(c.Since, now)
}

// readyTask returns the task, or what blocks it.
func readyTask(it *work.Item, explain bool) Cell {
	text, color := it.Task, Plain
	switch {
	case it.State == work.ItemBlocked:
		text, color = it.Blocked, Yellow
	case it.State == work.ItemQueued && !explain:
		text, color = "queued: "+it.Message, Dim
	}
	if explain && it.Message != "" && it.State != work.ItemBlocked {
		text += " (" + it.Message + ")"
	}
	return Cell{Text: text, Color: color}
}

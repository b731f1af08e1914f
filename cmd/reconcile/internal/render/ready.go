package render

import (
	"cmp"
	"io"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// ReadyTable lists items of work, a line each. With explain it tells of each why it stands as it does, when it is looked
// at again, and who took it.
func ReadyTable(w io.Writer, p Palette, items []controllers.Item, explain bool, now time.Time) error {
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
			cells = append(cells, Cell{Text: it.Reason}, Cell{Text: again(it.Again, now)}, Cell{Text: claimed(it.Claim, now)})
		}
		t.Cells(append(cells, what(it, explain))...)
	}
	return t.Write(w)
}

// again is how long it takes until something is looked at again though nothing changed.
func again(at schemas.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return none
	case !at.After(now):
		return "now"
	}
	return "in " + Age(at.Sub(now))
}

func claimed(c *controllers.ItemClaim, now time.Time) string {
	if c == nil {
		return none
	}
	return c.By + ", " + ageOf(c.Since, now)
}

// what says what is to be done, or what keeps it from being done.
func what(it *controllers.Item, explain bool) Cell {
	text, color := it.Task, Plain
	switch {
	case it.State == controllers.ItemBlocked:
		text, color = it.Blocked, Yellow
	case it.State == controllers.ItemQueued && !explain:
		text, color = "queued: "+it.Message, Dim
	}
	if explain && it.Message != "" && it.State != controllers.ItemBlocked {
		text += " (" + it.Message + ")"
	}
	return Cell{Text: text, Color: color}
}

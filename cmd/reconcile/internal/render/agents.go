package render

import (
	"io"
	"strconv"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// AgentRow is one agent in AgentTable. The zero activity is that of an agent without observed runs.
type AgentRow struct {
	Name string
	schemas.AgentActivity
}

// AgentTable writes a table of agents, a row for each, with its status, issue, clarification, and whom it waits for or
// responds to.
func AgentTable(w io.Writer, p Palette, rows []AgentRow, now time.Time) error {
	t := NewTable(p, "AGENT", "STATUS", "ISSUE", "CLARIFICATION", "WAITING ON", "RESPONDING TO", "LAST ACTIVITY")
	for _, r := range rows {
		status := r.Status
		if status == "" {
			status = "unknown"
		}
		t.Cells(Cell{Text: r.Name}, Cell{Text: status, Color: StateColor(status)}, Cell{Text: issueOf(r.Issue)},
			Cell{Text: orNone(r.ClarificationID)}, Cell{Text: orNone(r.WaitingOn)}, Cell{Text: orNone(r.RespondingTo)},
			Cell{Text: ageOf(r.LastActivity, now)})
	}
	return t.Write(w)
}

// none is shown in an empty cell.
const none = "-"

func issueWord(issue int) string {
	if issue == 0 {
		return "no issue"
	}
	return "#" + strconv.Itoa(issue)
}

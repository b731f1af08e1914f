package render

import (
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
)

// mostTalk is the maximum number of lines of one turn.
const mostTalk = 5

// TalkLines returns the lines of a clarification's turn as chat, such as "[Engineer -> Architect] Clarification needed
// (CLR-42-001):" and the beginning of the question. "reconcile clarify show" prints all of it.
func TalkLines(c *settle.Clarified) []string {
	switch {
	case c.Turn == nil:
		return []string{"[" + displayName(c.ToAgent) + "] " + c.ClarificationID + ": no answer in time"}
	case c.Escalation != nil:
		return escalationLines(c)
	}
	var b strings.Builder
	shown := threads.Thread{IssueNumber: c.IssueNumber, Thread: []schemas.ThreadEntry{*c.Turn},
		Clarification: schemas.Clarification{ID: c.ClarificationID, From: c.FromAgent, To: c.ToAgent, Status: c.Status},
		Human:         true} // the agent's run reports the routing
	if err := chatTurn(&b, shown, 0); err != nil {
		return nil // a strings.Builder does not fail
	}
	// The chat is Markdown, which escapes <; plain text does not.
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(b.String(), "&lt;", "<")), "\n")
	if len(lines) > mostTalk {
		lines = append(lines[:mostTalk], "  …")
	}
	return lines
}

// displayName returns the display name of an agent for a line of chat: product-manager is Product Manager.
func displayName(agent string) string { return chatLine(clarify.DisplayName(agent)) }

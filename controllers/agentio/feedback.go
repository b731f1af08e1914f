package agentio

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/schemas/shorten"
)

// Feedback is why a change was sent back.
type Feedback struct {
	From    string `json:"from"` // inspector or tester
	Loop    int    `json:"loop"` // from 1
	Most    int    `json:"most"`
	Summary string `json:"summary"`
	Text    string `json:"text"` // what was found, in lines
}

// feedbackLimit bounds what a prompt quotes of findings, in characters: some 3,000 tokens.
const feedbackLimit = 12_000

// text describes the findings in its change to an agent. They are quoted: tools print parts of the code.
func (f *Feedback) text() string {
	if f == nil {
		return ""
	}
	var d promptDocument
	d.say(fmt.Sprintf("\n\nYour change was sent back by the %s (%d of at most %d times). Your work is still there: go on from it, and mend what is "+
		"quoted here. Do not weaken, skip or delete a test or a check to pass.\n", label(f.From), f.Loop, f.Most))
	d.block("verdict", f.Summary)
	if strings.TrimSpace(f.Text) != "" {
		var found promptDocument
		found.quote(f.Text)
		d.begin("findings")
		d.say(shorten.Text(strings.TrimSuffix(found.String(), "\n"), feedbackLimit) + "\n")
		d.end("findings")
	}
	return d.String()
}

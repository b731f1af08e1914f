package agentio

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Handoff is what the conversation before this one left: its report, and what records tell of the work.
type Handoff struct {
	*schemas.AgentReport // nil: it reported nothing
	// Pipeline is the index of the one that goes on, Reason why the one before was handed over, and Failed why it goes on without the word of
	// the architect, in the pipeline that it was; all are empty for a session that goes on in the same pipeline.
	Pipeline int                `json:"pipeline,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Failed   string             `json:"failed,omitempty"`
	State    *schemas.TaskState `json:"state,omitempty"`
	// Instructions are those of Architect: an agent, or a person who answered in its place.
	Instructions string `json:"instructions,omitempty"`
	Architect    string `json:"architect,omitempty"`
}

// handoffLimit bounds the characters of a text in a hand-off, and handoffLines the lines of a list.
const (
	handoffLimit = 4000
	handoffLines = 40
)

// text tells an agent what it goes on with. It is quoted: programs wrote it.
func (h *Handoff) text() string {
	if h == nil || h.State == nil && h.AgentReport == nil {
		return ""
	}
	var d promptDocument
	if h.State == nil {
		d.say("\n\nYou continue this task: a session before this one handed it off. What it reported is quoted; check it.\n")
		h.report(&d)
		return d.String()
	}
	d.say(fmt.Sprintf("\n\nYou continue this task in a new conversation, as pipeline %d of it: the one before handed it over. What records tell of its work is quoted; check it.\n",
		h.Pipeline))
	d.block("why it was handed over", h.Reason)
	d.block("why it goes on without the word of the architect, in the pipeline that it was", h.Failed)
	h.write(&d)
	if h.AgentReport != nil {
		h.report(&d)
	}
	if strings.TrimSpace(h.Instructions) != "" {
		d.say("What was said about how to go on, when that was asked:\n")
		d.block("instructions of "+label(h.Architect), shorten.Text(h.Instructions, handoffLimit))
	}
	return d.String()
}

func (h *Handoff) report(d *promptDocument) {
	if h.State == nil || !slices.Contains(h.State.Engineer.Accomplished, h.Summary) {
		d.block("summary", h.Summary)
	}
	d.block("files that it changed", strings.Join(h.FilesChanged, "\n"))
	d.block("what remains", strings.Join(h.Remaining, "\n"))
}

// write writes the state of the work.
func (h *Handoff) write(d *promptDocument) {
	e := &h.State.Engineer
	list := func(name string, lines []string) {
		if n := len(lines) - handoffLines; n > 0 {
			lines = append([]string{fmt.Sprintf("… and %d before", n)}, lines[n:]...)
		}
		d.block(name, shorten.Text(strings.Join(lines, "\n"), handoffLimit))
	}
	list("what was accomplished", e.Accomplished)
	files := make([]string, len(e.FilesChanged))
	for i, c := range e.FilesChanged {
		if files[i] = strings.TrimSpace(c.ChangeType + " " + c.Path); c.Summary != "" {
			files[i] += " (" + c.Summary + ")"
		}
	}
	list("files that changed", files)
	if h.AgentReport == nil {
		list("what remains", e.Remaining)
	}
	list("what it said last", []string{e.ContextNotes})
	if s := h.State.Inspector; s != nil {
		list("what the inspector found that is pending", s.PendingForEngineer)
	}
	if s := h.State.Tester; s != nil {
		list("tests that fail", s.PendingFailures)
		list("what is yet to be tested", s.TestPlanRemaining)
	}
}

// shorter leaves out the part of the state that is missed least, and reports whether there was one.
func (h *Handoff) shorter() bool {
	if h == nil || h.State == nil {
		return false
	}
	s := *h.State
	h.State = &s
	e := &s.Engineer
	switch {
	case e.ContextNotes != "":
		e.ContextNotes = ""
	case len(e.FilesChanged) > 0: // the workspace has them
		e.FilesChanged = nil
	case len(e.Accomplished) > 1:
		e.Accomplished = e.Accomplished[len(e.Accomplished)/2+len(e.Accomplished)%2:]
	default:
		return false
	}
	return true
}

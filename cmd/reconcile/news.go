package main

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Bounds of what is shown of clarifications: events that wait for the end of a turn, and lines of one of them.
const (
	talkBuffer = 1024
	talkRows   = 5
)

// news tells of what happens in a run. What the loop decides goes onto a bus, once; the event log and the structured log
// hear of it there at once, under the lock of the tree, so that their order is that of the decisions. Progress must not
// make other processes wait for a terminal: what was said is shown when the lock is released.
type news struct {
	*wiring
	bus   events.Bus
	talk  *events.Subscription
	told  int      // of the dropped events of talk
	found findings // of the monitor in this turn
	// refused are the replies and questions that were refused in this turn, with the reasons.
	refused []string
}

func (w *wiring) newNews() *news {
	n := &news{wiring: w}
	n.bus.Handle(n.keep)
	if w.log != nil {
		n.bus.Handle(func(list []events.Event) { logEvents(w.log, list) })
		n.bus.Handle(n.found.add)
	}
	wants := func(e events.Event) bool { return w.options.talk && e.Clarification != nil }
	n.talk = n.bus.Subscribe("progress",
		events.SubscribeOptions{Buffer: talkBuffer, Policy: events.Drop, Wants: wants})
	return n
}

// record publishes transitions.
func (n *news) record(list []controllers.Event) {
	out := make([]events.Event, len(list))
	for i, e := range list {
		at := e.Time
		if at.IsZero() {
			at = schemas.NewTime(n.now())
		}
		kind := events.Normal
		if e.Warning {
			kind = events.Warning
		}
		out[i] = events.Event{Time: at, Ref: e.Ref.String(), Node: e.Node, Type: kind, Reason: e.Reason, Message: eventText(e),
			Clarification: e.Clarified, Memory: e.Remembered}
		if e.Reason == controllers.ReasonRefused || e.Reason == controllers.ReasonScopeViolation {
			n.refused = append(n.refused, e.Ref.String()+" was refused: "+e.Message)
		}
	}
	slices.SortStableFunc(out, func(a, b events.Event) int { return a.Time.Compare(b.Time.Time) })
	n.bus.Publish(out...)
}

// keep writes the event log. The log is local and can be lost; failing to write it fails nothing.
func (n *news) keep(list []events.Event) {
	if err := events.Append(n.store.Root(), list); err != nil {
		n.warn("event log: " + err.Error())
	}
}

// observe shows starts and ends as they are reported, and after a turn what was said in it.
func (n *news) observe(reports []controllers.Report, t *state.Tree) {
	for _, r := range reports {
		n.options.progress.Report(r)
		if r.Kind == controllers.Finished && r.Why != "" {
			n.options.progress.Note(r.Why)
		}
	}
	if reports != nil {
		return
	}
	for _, text := range n.refused {
		n.warn(text)
	}
	n.refused = nil
	n.options.progress.Tree(t)
	n.show()
	if n.log != nil {
		n.found.log(n.log, t)
	}
}

// show prints what was said since the last time.
func (n *news) show() {
	for {
		select {
		case d, ok := <-n.talk.C:
			n.tellMissed(d.Missed)
			if !ok {
				return
			}
			for _, line := range talkLines(d.Clarification) {
				n.options.progress.Note(line)
			}
		default:
			return
		}
	}
}

func (n *news) tellMissed(missed int) {
	if n.told += missed; missed > 0 {
		n.options.progress.Note(fmt.Sprintf("%d more events about questions; \"reconcile events\" lists them", missed))
	}
}

// close shows what is left. It must not be called under the lock of the tree.
func (n *news) close() {
	n.bus.Close()
	n.show()
	n.tellMissed(n.talk.Dropped() - n.told)
}

// talkLines are what was said in a clarification in the form of a chat: "[Engineer -> Architect] Clarification needed
// (CLR-42-001):" and the beginning of the question. "reconcile clarify show" has all of it.
func talkLines(c *controllers.Clarified) []string {
	switch {
	case c.Turn == nil:
		return []string{"[" + render.DisplayName(c.ToAgent) + "] " + c.ClarificationID + ": no answer in time"}
	case c.Escalation != nil:
		return escalationLines(c)
	}
	var b strings.Builder
	shown := render.Clarification{IssueNumber: c.IssueNumber, Thread: []schemas.ThreadEntry{*c.Turn},
		Clarification: schemas.Clarification{ID: c.ClarificationID, From: c.FromAgent, To: c.ToAgent, Status: c.Status},
		Human:         true} // of the routing, the run of the agent tells
	if err := render.ChatTurn(&b, shown, 0); err != nil {
		return nil // a strings.Builder takes everything
	}
	// The chat is Markdown, in which < must be told from HTML; here nothing is.
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(b.String(), "&lt;", "<")), "\n")
	if len(lines) > talkRows {
		lines = append(lines[:talkRows], "  …")
	}
	return lines
}

// escalationLines are what a human has to decide: why, the open question, the positions and the options.
func escalationLines(c *controllers.Clarified) []string {
	const most = 400 // columns of one text; "reconcile clarify show" has all of it
	e := c.Escalation
	lines := []string{"[ESCALATED] " + c.ClarificationID + ": " + render.Line(c.Topic),
		"  Why: " + clarify.Because(e.Reason, c.Turn.Body)}
	for i, p := range e.Positions {
		head := "  " + render.DisplayName(p.Agent) + ": "
		if i == 0 { // the side that asks
			head = "  Open question of " + render.DisplayName(p.Agent) + ": "
		}
		lines = append(lines, head+render.Cut(render.Line(strings.Join(strings.Fields(p.Body), " ")), most))
	}
	for i, o := range e.Options {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, o))
	}
	return append(lines, "  "+e.Action)
}

// eventText is "Running → Succeeded", with the message where there is one that says more.
func eventText(e controllers.Event) string {
	text := e.Message
	if e.From != e.To {
		move := e.To
		if e.From != "" {
			move = e.From + " → " + e.To
		}
		if text == "" || strings.EqualFold(text, e.To) {
			return move
		}
		text = move + ": " + text
	}
	return text
}

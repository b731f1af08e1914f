// Package eventlog records the events of a run: in the event log of the tree, in the structured log, and for an
// observer.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// backlog bounds the clarification events that wait for the end of a turn to be shown.
const backlog = 1024

// mostAsked is how many new questions are shown after a turn.
const mostAsked = 20

// Observer displays a run. Its methods are called by one goroutine, between turns.
type Observer interface {
	// Report is called with each report of the performer about a node.
	Report(settle.Report)
	// Tree is called with the tree after a turn; it must not be changed.
	Tree(*state.Tree)
	// Said is called after a turn with each clarification event of it.
	Said(*settle.Clarified)
	// Missed is called with the number of further such events: of more questions than are shown, and of dropped ones.
	Missed(n int)
}

// Options configure a Recorder.
type Options struct {
	Root     *os.Root // of the tree
	Now      func() time.Time
	Log      *slog.Logger // nil: nothing is logged
	Observer Observer
	Warn     func(text string)
}

// Recorder publishes the events of a run. Each decision of the loop is published once. The event log and the structured
// log are written at once, under the lock of the tree, so that they have the order of the decisions. The observer is
// called after the lock is released, since a slow terminal must not delay other processes.
type Recorder struct {
	o      Options
	file   events.Writer
	bus    events.Bus
	talk   *events.Subscription
	missed int             // dropped events of talk that were reported
	found  monitorFindings // findings of the monitor in this turn
	// refused are the replies and questions that were refused in this turn, with the reasons.
	refused []string
}

// New returns a Recorder. The caller closes it.
func New(o Options) *Recorder {
	n := &Recorder{o: o, file: events.Writer{Root: o.Root}}
	n.talk = n.bus.Subscribe("progress", events.SubscribeOptions{Buffer: backlog, Policy: events.Drop,
		Wants: func(e events.Event) bool { return e.Clarification != nil }})
	return n
}

// Record publishes transitions.
func (n *Recorder) Record(list []settle.Event) {
	out := make([]events.Event, len(list))
	for i, e := range list {
		if e.Time.IsZero() {
			e.Time = schemas.NewTime(n.o.Now())
		}
		out[i] = entry(e)
		if e.Reason == settle.ReasonRefused || e.Reason == settle.ReasonScopeViolation {
			n.refused = append(n.refused, e.Ref.String()+" was refused: "+e.Message)
		}
	}
	slices.SortStableFunc(out, func(a, b events.Event) int { return a.Time.Compare(b.Time.Time) })
	if len(out) == 0 {
		return
	}
	n.appendLog(out)
	if n.o.Log != nil {
		logEvents(n.o.Log, out)
		n.found.add(out)
	}
	n.bus.Publish(out...)
}

// appendLog writes the event log. The log is local and expendable: an error is only a warning.
func (n *Recorder) appendLog(list []events.Event) {
	if err := n.file.Append(list); err != nil {
		n.o.Warn("event log: " + err.Error())
	}
}

// Observe passes reports to the observer, and after a turn the tree and the clarification events.
func (n *Recorder) Observe(reports []settle.Report, t *state.Tree) {
	for _, r := range reports {
		n.o.Observer.Report(r)
	}
	if reports != nil {
		return
	}
	for _, text := range n.refused[:min(len(n.refused), readiness.MostRows)] {
		n.o.Warn(text)
	}
	if more := len(n.refused) - readiness.MostRows; more > 0 {
		n.o.Warn(fmt.Sprintf("… and %d more were refused; \"reconcile events\" lists them", more))
	}
	n.refused = nil
	n.o.Observer.Tree(t)
	n.showTalk()
	if n.o.Log != nil {
		n.found.log(n.o.Log, t)
	}
}

// showTalk shows the clarification events since the last call, and counts those of new questions beyond mostAsked.
func (n *Recorder) showTalk() {
	asked := 0
	defer func() {
		if asked > mostAsked {
			n.o.Observer.Missed(asked - mostAsked)
		}
	}()
	for {
		select {
		case d, ok := <-n.talk.C:
			n.reportMissed(d.Missed)
			if !ok {
				return
			}
			if d.Clarification.Type == settle.ClarificationRequested {
				asked++
			}
			if d.Clarification.Type != settle.ClarificationRequested || asked <= mostAsked {
				n.o.Observer.Said(d.Clarification)
			}
		default:
			return
		}
	}
}

// reportMissed counts events that a slow reader of the event log missed.
func (n *Recorder) reportMissed(missed int) {
	if n.missed += missed; missed > 0 {
		n.o.Observer.Missed(missed)
	}
}

// Close closes the recorder's event log and its bus of events, and shows the remaining talk and the number of missed
// events. It must not be called under the lock of the tree.
func (n *Recorder) Close() {
	if err := n.file.Close(); err != nil {
		n.o.Warn("event log: " + err.Error())
	}
	n.bus.Close()
	n.showTalk()
	n.reportMissed(n.talk.Dropped() - n.missed)
}

// eventText returns "Running → Succeeded", followed by the message if it adds information.
func eventText(e settle.Event) string {
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

// entry converts an event to its form in the logs.
func entry(e settle.Event) events.Event {
	kind := events.Normal
	if e.Warning {
		kind = events.Warning
	}
	return events.Event{Time: e.Time, Ref: e.Ref.String(), Node: e.Node, Type: kind, Reason: e.Reason, Message: eventText(e),
		Clarification: e.Clarified, Memory: e.Remembered}
}

// Append appends an event that happened outside of a run to the event log, under the lock of the store's tree, and logs
// it. log may be nil.
func Append(ctx context.Context, s *state.Store, log *slog.Logger, e settle.Event) error {
	list := []events.Event{entry(e)}
	if log != nil {
		logEvents(log, list)
	}
	lock, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(events.Append(s.Root(), list), lock.Release())
}

// Package eventlog records what happens in a run: in the event log of the tree, in the structured log, and for an observer.
package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// backlog bounds the turns of clarifications that wait for the end of a turn of the loop to be shown.
const backlog = 1024

// Observer is what shows a run. Its methods are called by one goroutine, between turns.
type Observer interface {
	// Report is called with what the performer reports of a node.
	Report(controllers.Report)
	// Tree is called with the tree after a turn; it must not be changed.
	Tree(*state.Tree)
	// Said is called after a turn with what was said in clarifications in it.
	Said(*controllers.Clarified)
	// Missed is called with how many more such events there were.
	Missed(n int)
}

// Options say what a Recorder works with.
type Options struct {
	Root     *os.Root // of the tree
	Now      func() time.Time
	Log      *slog.Logger // nil: nothing is logged
	Observer Observer
	Warn     func(text string)
}

// Recorder publishes the events of a run. What the loop decides is published once; the event log and the structured log
// have it at once, under the lock of the tree, so that their order is that of the decisions. The observer must not make
// other processes wait for a terminal: it is called when the lock is released.
type Recorder struct {
	o      Options
	bus    events.Bus
	talk   *events.Subscription
	missed int      // of the dropped events of talk, those that were reported
	found  findings // of the monitor in this turn
	// refused are the replies and questions that were refused in this turn, with the reasons.
	refused []string
}

// New returns a Recorder, which is to be closed.
func New(o Options) *Recorder {
	n := &Recorder{o: o}
	n.bus.Handle(n.keep)
	if o.Log != nil {
		n.bus.Handle(func(list []events.Event) { Log(o.Log, list) })
		n.bus.Handle(n.found.add)
	}
	n.talk = n.bus.Subscribe("progress", events.SubscribeOptions{Buffer: backlog, Policy: events.Drop,
		Wants: func(e events.Event) bool { return e.Clarification != nil }})
	return n
}

// Record publishes transitions.
func (n *Recorder) Record(list []controllers.Event) {
	out := make([]events.Event, len(list))
	for i, e := range list {
		if e.Time.IsZero() {
			e.Time = schemas.NewTime(n.o.Now())
		}
		out[i] = entry(e)
		if e.Reason == controllers.ReasonRefused || e.Reason == controllers.ReasonScopeViolation {
			n.refused = append(n.refused, e.Ref.String()+" was refused: "+e.Message)
		}
	}
	slices.SortStableFunc(out, func(a, b events.Event) int { return a.Time.Compare(b.Time.Time) })
	n.bus.Publish(out...)
}

// keep writes the event log. The log is local and can be lost; failing to write it fails nothing.
func (n *Recorder) keep(list []events.Event) {
	if err := events.Append(n.o.Root, list); err != nil {
		n.o.Warn("event log: " + err.Error())
	}
}

// Observe hands on reports as they come, and after a turn the tree and what was said in it.
func (n *Recorder) Observe(reports []controllers.Report, t *state.Tree) {
	for _, r := range reports {
		n.o.Observer.Report(r)
	}
	if reports != nil {
		return
	}
	for _, text := range n.refused {
		n.o.Warn(text)
	}
	n.refused = nil
	n.o.Observer.Tree(t)
	n.show()
	if n.o.Log != nil {
		n.found.log(n.o.Log, t)
	}
}

// show prints what was said since the last time.
func (n *Recorder) show() {
	for {
		select {
		case d, ok := <-n.talk.C:
			n.reportMissed(d.Missed)
			if !ok {
				return
			}
			n.o.Observer.Said(d.Clarification)
		default:
			return
		}
	}
}

func (n *Recorder) reportMissed(missed int) {
	if n.missed += missed; missed > 0 {
		n.o.Observer.Missed(missed)
	}
}

// Close shows what is left. It must not be called under the lock of the tree.
func (n *Recorder) Close() {
	n.bus.Close()
	n.show()
	n.reportMissed(n.talk.Dropped() - n.missed)
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

// entry is an event as the logs have it.
func entry(e controllers.Event) events.Event {
	kind := events.Normal
	if e.Warning {
		kind = events.Warning
	}
	return events.Event{Time: e.Time, Ref: e.Ref.String(), Node: e.Node, Type: kind, Reason: e.Reason, Message: eventText(e),
		Clarification: e.Clarified, Memory: e.Remembered}
}

// Append writes an event of what happened outside of a run into the logs. It takes the lock of the tree; log may be nil.
func Append(ctx context.Context, s *state.Store, log *slog.Logger, e controllers.Event) error {
	list := []events.Event{entry(e)}
	if log != nil {
		Log(log, list)
	}
	lock, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(events.Append(s.Root(), list), lock.Release())
}

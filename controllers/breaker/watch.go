package breaker

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// A record of one object may open or close the breaker of an agent that works for others. They are decided again when that happens, and
// not for every record.

// Watch adds, before a round, the objects that are not as the breakers want them.
func Watch(r *settle.Round) {
	b := shared(r.World.OfRun)
	if len(b.watched) == 0 {
		return
	}
	b.now = r.World.Now
	b.follow(r.World.Tree)
	for name, w := range b.watched {
		for by := range w.asked {
			w.sort(by, r.World.Tree)
		}
		clear(w.asked)
		for _, by := range slices.Collect(maps.Keys(w.wrong(b.At(name)))) {
			switch {
			case !w.sort(by, r.World.Tree):
			case by.ref.Kind == schemas.AgentKind.Name:
				r.Add(by.ref) // only its condition depends on it
			default:
				r.AddWithReaders(by.ref)
			}
		}
	}
}

// wrong are the askers that are not as the breaker wants them.
func (w *watch) wrong(b Breaker) map[asker]bool {
	if b.State == Open || b.State == HalfOpen && b.Trying {
		return w.free
	}
	return w.waiting
}

// sort puts an asker where it belongs by the tree, and reports whether it is still watched.
func (w *watch) sort(by asker, t *state.Tree) bool {
	delete(w.free, by)
	delete(w.waiting, by)
	free, waiting := by.standing(t)
	switch {
	case waiting:
		w.waiting[by] = true
	case free:
		w.free[by] = true
	}
	return free || waiting
}

// standing reports whether an asker may start, or waits for an agent. An agent waits while its condition says that its runs fail.
func (by asker) standing(t *state.Tree) (free, waiting bool) {
	e := t.Entry(by.ref)
	if e == nil || e.Status() == nil {
		return false, false
	}
	switch by.ref.Kind {
	case schemas.AgentKind.Name:
		c := e.Status().Base().Condition(settle.Healthy)
		waiting = c != nil && c.Reason == settle.ReasonRunsFail
		return !waiting, waiting
	case schemas.DAGKind.Name:
		n := schemas.NodesIn(e.Status()).Of(by.node)
		waiting = n.Reason == settle.ReasonAgentUnhealthy
		return n.State == schemas.NodeQueued && !waiting, waiting
	}
	c := e.Status().Base().Condition(schemas.Ready)
	if c == nil || c.Reason != settle.ReasonPending && c.Reason != settle.ReasonStale {
		return false, false
	}
	waiting = strings.Contains(c.Message, CannotWork)
	return !waiting, waiting
}

// CannotWork is in the message of a question whose agent cannot work.
const CannotWork = " cannot work: "

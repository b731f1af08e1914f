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
			w.sort(by, name, r.World.Tree)
		}
		clear(w.asked)
		for _, by := range w.wrong(b.At(name)) {
			switch {
			case !w.sort(by, name, r.World.Tree):
			case by.ref.Kind == schemas.AgentKind.Name:
				r.Add(by.ref) // only its condition depends on it
			default:
				r.AddWithReaders(by.ref)
			}
		}
	}
}

// wrong lists the askers that are not as the breaker wants them, or say of it what is no longer so.
func (w *watch) wrong(b Breaker) []asker {
	if b.State == Closed || b.State == HalfOpen && !b.Trying {
		return slices.Collect(maps.Keys(w.waiting))
	}
	list := slices.Collect(maps.Keys(w.free))
	if w.compared == b {
		return list
	}
	is := told{why: b.Describe(), until: b.Until}
	for by, said := range w.waiting {
		if !said.holds(is) {
			list = append(list, by)
		}
	}
	if len(list) == 0 {
		w.compared = b
	}
	return list
}

// sort puts an asker about an agent where it belongs by the tree, and reports whether it is still watched.
func (w *watch) sort(by asker, agent string, t *state.Tree) bool {
	delete(w.free, by)
	delete(w.waiting, by)
	free, waiting, says := by.standing(agent, t)
	switch {
	case waiting:
		w.waiting[by], w.compared = says, Breaker{}
	case free:
		w.free[by] = true
	}
	return free || waiting
}

// told is what a status says of a breaker: why its agent gets no work, and when a run is tried. Empty fields say nothing.
type told struct {
	why   string // and what follows it in the message
	until schemas.Time
}

// holds reports whether what was told is still so.
func (s told) holds(is told) bool {
	return (s.why == "" || strings.HasPrefix(s.why, is.why)) && (s.until.IsZero() || s.until == is.until)
}

// standing reports whether an asker may start, or waits for an agent, and what it says of the agent. An agent waits while its condition
// says that its runs fail.
func (by asker) standing(agent string, t *state.Tree) (free, waiting bool, says told) {
	e := t.Entry(by.ref)
	if e == nil || e.Status() == nil {
		return false, false, told{}
	}
	switch by.ref.Kind {
	case schemas.AgentKind.Name:
		c := e.Status().Base().Condition(settle.Healthy)
		if waiting = c != nil && c.Reason == settle.ReasonRunsFail; waiting {
			says.why = c.Message
		}
		return !waiting, waiting, says
	case schemas.DAGKind.Name:
		n := schemas.NodesIn(e.Status()).Of(by.node)
		waiting = n.Reason == settle.ReasonAgentUnhealthy
		if _, why, ok := strings.Cut(n.Message, "agent/"+agent+","+Which); ok {
			says = told{why, n.RetryAt}
		}
		return n.State == schemas.NodeQueued && !waiting, waiting, says
	}
	c := e.Status().Base().Condition(schemas.Ready)
	if c == nil || c.Reason != settle.ReasonPending && c.Reason != settle.ReasonStale {
		return false, false, told{}
	}
	waiting = strings.Contains(c.Message, CannotWork)
	_, says.why, _ = strings.Cut(c.Message, "agent/"+agent+CannotWork)
	return !waiting, waiting, says
}

// CannotWork is in the message of a question whose agent cannot work, and Which in that of a node.
const (
	CannotWork = " cannot work: "
	Which      = " which cannot work: "
)

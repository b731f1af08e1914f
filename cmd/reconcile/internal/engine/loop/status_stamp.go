package loop

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// statusStamp summarizes the last written version of a status; canDefer compares it with the current one.
type statusStamp struct {
	size    int // bytes of the file
	phase   string
	ready   string
	actions int      // applied actions
	blocked []string // nodes that wait for a person, sorted
	// handoffs are the hand-offs of nodes with their phases: the status is on disk before a new conversation begins.
	handoffs string
}

// waits reports whether the written version may stay while the status has become another one. What people decide, and what they are asked to, is
// written at once.
func (was *statusStamp) waits(is *statusStamp) bool {
	return was.phase == is.phase && was.ready == is.ready && was.actions == is.actions && was.handoffs == is.handoffs &&
		!slices.ContainsFunc(is.blocked, func(n string) bool { _, old := slices.BinarySearch(was.blocked, n); return !old })
}

func stampOf(e *state.Entry, size int) statusStamp {
	base := e.Status().Base()
	is := statusStamp{size: size, phase: base.Phase}
	if c := base.Condition(schemas.Ready); c != nil {
		is.ready = string(c.Status) + c.Reason
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return is
	}
	is.actions = len(st.Actions)
	if e.Object != nil && len(plan.Of(e.Object).Agents) > 0 {
		for name, n := range st.Nodes.All() {
			if x := n.Handoff.Last(); x != nil {
				is.handoffs += fmt.Sprintln(name, len(n.Handoff.Chain), x.Phase)
			}
		}
	}
	if !e.Brief().Blocked {
		return is
	}
	for name, n := range st.Nodes.All() {
		if n.State == schemas.NodeBlocked {
			is.blocked = append(is.blocked, name)
		}
	}
	slices.Sort(is.blocked)
	return is
}

package loop

import (
	"slices"

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

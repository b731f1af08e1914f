package loop

import (
	"slices"

	"reconcile.dev/reconcile/controllers"
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

// canDefer reports whether writing a status that differs from its file can wait. While effects run, readers reconstruct
// progress below phase and readiness from the journal ([controllers.Current]). The status is written when the results
// since the last write are as large as the file, so the bytes of all writes grow linearly with the results. A node that
// waits for a person is written at once.
func (s *run) canDefer(e *state.Entry) bool {
	was, ok := s.written[e.Ref]
	if !ok || !controllers.Foretold(s.tree, e.Ref) || s.idle() {
		return false
	}
	is := stampOf(e, 0)
	return was.phase == is.phase && was.ready == is.ready && was.actions == is.actions &&
		!slices.ContainsFunc(is.blocked, func(n string) bool { _, old := slices.BinarySearch(was.blocked, n); return !old }) &&
		s.unwrittenBytes[e.Ref] < was.size
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
	for name, n := range st.Nodes {
		if n.State == schemas.NodeBlocked {
			is.blocked = append(is.blocked, name)
		}
	}
	slices.Sort(is.blocked)
	return is
}

// sizeOf estimates the bytes of a record.
func sizeOf(r *schemas.Run) int {
	const frame = 500
	return frame + len(r.Message) + len(r.Output) + len(r.Result)
}

package loop

import (
	"slices"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// stamp is what mayWait compares: what was last written of a status.
type stamp struct {
	size    int // of the file
	phase   string
	ready   string
	actions int      // that were applied
	blocked []string // nodes that somebody has to act on, sorted
}

// mayWait reports whether a status that differs from its file may be written later. While something is under way,
// progress below phase and readiness can be told from the journal ([controllers.Current]); it is written when the
// results since the last write are as large as the file, so that the bytes of all writes grow as the results do. What
// somebody has to act on is written at once.
func (s *session) mayWait(e *state.Entry) bool {
	was, ok := s.written[e.Ref]
	if !ok || !controllers.Foretold(e.Kind) || s.idle() {
		return false
	}
	is := stampOf(e, 0)
	return was.phase == is.phase && was.ready == is.ready && was.actions == is.actions &&
		!slices.ContainsFunc(is.blocked, func(n string) bool { _, old := slices.BinarySearch(was.blocked, n); return !old }) &&
		s.recordedOf[e.Ref] < was.size
}

func stampOf(e *state.Entry, size int) stamp {
	base := e.Status().Base()
	is := stamp{size: size, phase: base.Phase}
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

// sizeOf is about as many bytes as a record takes.
func sizeOf(r *schemas.Run) int {
	const frame = 500
	return frame + len(r.Message) + len(r.Output) + len(r.Result)
}

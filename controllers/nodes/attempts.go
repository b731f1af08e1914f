package nodes

import (
	"cmp"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Attempts lists the attempts of a node, recorded or running. The last one is the current one: the latest under the key
// of the node in the status of e. Attempts under other keys come first, in the order of their ends; fits counts those
// under the present key.
func Attempts(e *state.Entry, node string) (list []*schemas.Run, fits int) {
	key := ""
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		key = st.Nodes.Of(node).Key
	}
	for _, r := range e.Runs() {
		if r.Node == node {
			list = append(list, r)
		}
	}
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Node == node {
			list = append(list, &c.Run)
		}
	}
	present := func(r *schemas.Run) bool { return r.NodeKey == key }
	slices.SortStableFunc(list, func(a, b *schemas.Run) int {
		switch {
		case present(a) != present(b):
			if present(a) {
				return 1
			}
			return -1
		case present(a):
			return cmp.Compare(a.Seq, b.Seq)
		case a.Done() != b.Done():
			if a.Done() {
				return -1
			}
			return 1
		}
		return a.FinishedAt.Compare(b.FinishedAt.Time)
	})
	for _, r := range list {
		if present(r) {
			fits++
		}
	}
	return list, fits
}

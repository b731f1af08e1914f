package state

import (
	"context"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Prune removes the oldest records of each node beyond keep, but none under the key that the node's status names now.
// The tree must be locked by this store; the records that t has not heard of stay.
func (s *Store) Prune(ctx context.Context, t *Tree, keep int) error {
	var changes []Change
	for _, key := range t.Surplus(keep) {
		changes = append(changes, Change{Path: s.RunPath(key)})
	}
	_, err := s.Write(ctx, changes)
	return err
}

// Surplus returns the keys of the records that Prune would remove.
func (t *Tree) Surplus(keep int) []string {
	var out []string
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			out = append(out, e.surplus(keep)...)
		}
	}
	return out
}

func (e *Entry) surplus(keep int) []string {
	if len(e.Runs) <= keep {
		return nil
	}
	var now map[string]schemas.NodeStatus
	if st, ok := e.Status.(*schemas.DAGStatus); ok {
		now = st.Nodes
	}
	byNode := map[string][]*schemas.Run{}
	for _, r := range e.Runs {
		byNode[r.Node] = append(byNode[r.Node], r)
	}
	var out []string
	for node, runs := range byNode {
		slices.SortStableFunc(runs, func(a, b *schemas.Run) int { return b.FinishedAt.Compare(a.FinishedAt.Time) })
		for i, r := range runs {
			if i >= keep && r.NodeKey != now[node].Key {
				out = append(out, r.Key)
			}
		}
	}
	slices.Sort(out)
	return out
}

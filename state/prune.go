package state

import (
	"cmp"
	"context"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Prune removes the surplus records of runs in the tree t: beyond keep for each node, the oldest first. It keeps records
// with the node's current key, and those by which an agent holds an item of work. The tree must be locked by this store;
// records that are not in t stay.
func (s *Store) Prune(ctx context.Context, t *Tree, keep int) error {
	var changes []Change
	for _, key := range t.Surplus(keep) {
		changes = append(changes, Change{Path: s.RunPath(key)})
	}
	_, err := s.Write(ctx, changes)
	return err
}

// Surplus returns the keys of the surplus records of active entries, those beyond keep for a node, which Prune would remove.
// Dormant objects have none: they were pruned before the tree was settled.
func (t *Tree) Surplus(keep int) []string {
	var out []string
	for _, kind := range t.Kinds() {
		for _, e := range t.Active(kind) {
			out = append(out, e.surplus(keep)...)
		}
	}
	return out
}

func (e *Entry) surplus(keep int) []string {
	if e.RunCount() <= keep {
		return nil
	}
	now := schemas.NodesIn(e.Status())
	byNode := map[string][]*schemas.Run{}
	for _, r := range e.Runs() {
		byNode[r.Node] = append(byNode[r.Node], r)
	}
	var out []string
	open := Unended(e.Runs())
	for node, runs := range byNode {
		slices.SortStableFunc(runs, e.newestFirst)
		for i, r := range runs {
			claims := r.For != "" && slices.Contains(open, r)
			if i >= keep && r.NodeKey != now[node].Key && !claims {
				out = append(out, r.Key)
			}
		}
	}
	slices.Sort(out)
	return out
}

// newestFirst compares records by their ends. Records of an agent, which all have the same key, are compared by number,
// so that after a clock step backwards no end of work is removed before its beginning.
func (e *Entry) newestFirst(a, b *schemas.Run) int {
	if e.Kind == schemas.AgentKind.Name {
		return cmp.Compare(b.Seq, a.Seq)
	}
	return b.FinishedAt.Compare(a.FinishedAt.Time)
}

// Unended returns the open runs of hooks, in their order: those whose outcome is started, without a later run of the issue
// that is done. runs are in the order of an entry. An end applies to all earlier work on its issue, or, if it names an item
// of work (Run.For), only to that item.
func Unended(runs []*schemas.Run) []*schemas.Run {
	var open []*schemas.Run
	for _, r := range runs {
		switch r.Outcome {
		case schemas.OutcomeStarted:
			open = append(open, r)
		case schemas.OutcomeDone:
			open = slices.DeleteFunc(open, func(s *schemas.Run) bool {
				return s.Issue == r.Issue && (r.For == "" || s.For == r.For)
			})
		}
	}
	return open
}

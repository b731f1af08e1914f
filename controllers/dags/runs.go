package dags

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// runsOf are the records of node i under its present key, in order.
func (f *fold) runsOf(i int32) []*schemas.Run {
	var out []*schemas.Run
	for _, r := range f.nodeRuns(f.p.Spec.Nodes[i].Name) {
		if r.NodeKey == f.b.Keys[i] {
			out = append(out, r)
		}
	}
	return out
}

// nodeRuns are the records of a node, or of the attempts of a field's notifications, under all keys and in order.
func (f *fold) nodeRuns(node string) []*schemas.Run {
	all := f.Runs()
	from, _ := slices.BinarySearchFunc(all, node, func(r *schemas.Run, name string) int { return strings.Compare(r.Node, name) })
	to := from
	for to < len(all) && all[to].Node == node {
		to++
	}
	return all[from:to]
}

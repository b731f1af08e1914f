package vectors

import (
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
)

// holdings say which input a snapshot has what from.
type holdings struct {
	names   []string // of the inputs, sorted
	digests []uint64
	states  []bool // whether it states edges, provenances or conflicts
	starts  []int  // where the nodes of an input begin in nodes; one more for the end
	nodes   []graph.Ref
	owner   []int32               // of each node the first input that has it
	others  map[graph.Ref][]int32 // of nodes that several have, all of these
}

func encodeHoldings(g *graph.Graph, a *assembly) []byte {
	states := make([]bool, len(a.inputs))
	for _, f := range a.facts {
		states[f.input] = true
	}
	w := &writer{}
	w.number(uint64(len(a.inputs)))
	for n, in := range a.inputs {
		w.string(in.Name)
		w.fixed(in.Digest)
		var refs []graph.Ref
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok {
				refs = append(refs, r)
			}
		}
		states[n] = states[n] || slices.ContainsFunc(in.Edges, func(e graph.Edge) bool {
			return e.Source != "" || a.owner[a.find(e.From)] != n
		})
		w.flag(states[n])
		w.number(uint64(len(refs)))
		for _, r := range refs {
			w.number(uint64(r))
		}
	}
	return w.to
}

func decodeHoldings(data []byte, nodes int) (*holdings, error) {
	r := &reader{from: data}
	h := &holdings{others: map[graph.Ref][]int32{}, owner: make([]int32, nodes), nodes: make([]graph.Ref, 0, nodes+nodes/16)}
	for i := range h.owner {
		h.owner[i] = -1
	}
	for n := range r.count(11) {
		h.names, h.digests = append(h.names, r.string()), append(h.digests, r.fixed())
		h.states, h.starts = append(h.states, r.flag()), append(h.starts, len(h.nodes))
		for range r.count(1) {
			ref := r.small()
			if ref >= nodes {
				return nil, ErrDamaged
			}
			h.take(graph.Ref(ref), int32(n))
		}
	}
	h.starts = append(h.starts, len(h.nodes))
	if r.bad || len(r.from) > 0 || !slices.IsSorted(h.names) || slices.Contains(h.owner, -1) {
		return nil, ErrDamaged
	}
	return h, nil
}

// take notes that an input has a node.
func (h *holdings) take(r graph.Ref, input int32) {
	h.nodes = append(h.nodes, r)
	switch {
	case h.owner[r] < 0:
		h.owner[r] = input
	case h.others[r] == nil:
		h.others[r] = []int32{h.owner[r], input}
	default:
		h.others[r] = append(h.others[r], input)
	}
}

// find is the number of an input.
func (h *holdings) find(name string) (int, bool) { return slices.BinarySearch(h.names, name) }

// of are the nodes of an input.
func (h *holdings) of(n int) []graph.Ref { return h.nodes[h.starts[n]:h.starts[n+1]] }

// holders are the inputs that have a node, the owner first.
func (h *holdings) holders(r graph.Ref) []int32 {
	if all := h.others[r]; all != nil {
		return all
	}
	return h.owner[r : r+1]
}

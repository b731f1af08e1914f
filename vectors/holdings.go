package vectors

import (
	"slices"
	"sync"

	"reconcile.dev/reconcile/vectors/graph"
)

// holdings say which input a snapshot has what from. What they have of nodes is read when it is first asked for, which is
// when there is a delta.
type holdings struct {
	names   []string // of the inputs, sorted
	digests []uint64
	states  []bool // whether it states edges, provenances or conflicts

	section []byte // what the rest is read from
	count   int    // of nodes
	once    sync.Once
	damage  error

	starts []int // where the nodes of an input begin in nodes; one more for the end
	nodes  []graph.Ref
	owner  []int32               // of each node the first input that has it
	others map[graph.Ref][]int32 // of nodes that several have, all of these
}

// encodeHoldings writes the inputs, and what each has.
func encodeHoldings(g *graph.Graph, a *assembly) (inputs, nodes []byte) {
	states := make([]bool, len(a.inputs))
	for _, f := range a.facts {
		states[f.input] = true
	}
	w, held := &writer{}, &writer{}
	w.number(uint64(len(a.inputs)))
	for n, in := range a.inputs {
		w.string(in.Name)
		w.fixed(in.Digest)
		w.flag(states[n] || slices.ContainsFunc(in.Edges, func(e graph.Edge) bool {
			return e.Source != "" || a.owner[a.find(e.From)] != n
		}))
		var refs []graph.Ref
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok {
				refs = append(refs, r)
			}
		}
		held.number(uint64(len(refs)))
		for _, r := range refs {
			held.number(uint64(r))
		}
	}
	return w.to, held.to
}

// decodeInputs reads the inputs of a snapshot of so many nodes, what they have of which is in the other section.
func decodeInputs(data, held []byte, nodes int) (*holdings, error) {
	r := &reader{from: data}
	n := r.count(10)
	h := &holdings{
		names: make([]string, n), digests: make([]uint64, n), states: make([]bool, n), section: held, count: nodes,
	}
	all := string(data) // of which the names are parts
	for i := range h.names {
		size := r.count(1)
		at := len(data) - len(r.from)
		h.names[i] = all[at : at+size]
		r.from = r.from[size:]
		h.digests[i], h.states[i] = r.fixed(), r.flag()
	}
	if r.bad || len(r.from) > 0 || !slices.IsSorted(h.names) {
		return nil, ErrDamaged
	}
	return h, nil
}

// read reads what inputs have, once.
func (h *holdings) read() error {
	h.once.Do(func() { h.damage = h.decode() })
	return h.damage
}

func (h *holdings) decode() error {
	h.others, h.owner, h.nodes = map[graph.Ref][]int32{}, make([]int32, h.count), make([]graph.Ref, 0, h.count+h.count/16)
	for i := range h.owner {
		h.owner[i] = -1
	}
	r := &reader{from: h.section}
	for n := range h.names {
		h.starts = append(h.starts, len(h.nodes))
		for range r.count(1) {
			ref := r.small()
			if ref >= h.count {
				return ErrDamaged
			}
			h.take(graph.Ref(ref), int32(n))
		}
	}
	h.starts = append(h.starts, len(h.nodes))
	if r.bad || len(r.from) > 0 || slices.Contains(h.owner, -1) {
		return ErrDamaged
	}
	return nil
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

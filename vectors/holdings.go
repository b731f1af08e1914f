package vectors

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"

	"reconcile.dev/reconcile/vectors/graph"
)

// holdings say which input a snapshot has what from. Which nodes is looked up in the section itself, as it is needed for few
// inputs: those that a delta has, too.
type holdings struct {
	names   []string // of the inputs, sorted
	digests []uint64
	states  []bool // whether it states edges, provenances or conflicts

	section []byte
	places  uint32 // of nodes
	once    sync.Once
	damage  error
	// The parts of the section, see [encodeHeld].
	starts, nodes, owners, shared, sharedStarts, sharers numbers
}

// numbers are uint32, little-endian.
type numbers []byte

func (n numbers) len() int        { return len(n) / 4 }
func (n numbers) at(i int) uint32 { return binary.LittleEndian.Uint32(n[4*i:]) }

// ascend reports whether the first is 0, none is smaller than the one before, and the last is so many.
func (n numbers) ascend(last int) bool {
	for i := range n.len() - 1 {
		if n.at(i) > n.at(i+1) {
			return false
		}
	}
	return n.at(0) == 0 && n.at(n.len()-1) == uint32(last)
}

// below reports whether all are smaller than a limit.
func (n numbers) below(limit int) bool {
	most := uint32(0)
	for i := range n.len() {
		most = max(most, n.at(i))
	}
	return n.len() == 0 || most < uint32(limit)
}

// encodeHoldings writes the inputs, and what each has.
func encodeHoldings(g *graph.Graph, a *assembly) (inputs, held []byte) {
	states := make([]bool, len(a.inputs))
	for _, f := range a.facts {
		states[f.input] = true
	}
	w := &writer{}
	w.number(uint64(len(a.inputs)))
	refs := make([][]uint32, len(a.inputs))
	for n, in := range a.inputs {
		w.string(in.Name)
		w.fixed(in.Digest)
		w.flag(states[n] || slices.ContainsFunc(in.Edges, func(e graph.Edge) bool {
			return e.Source != "" || a.owner[a.find(e.From)] != n
		}))
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok {
				refs[n] = append(refs[n], uint32(r))
			}
		}
	}
	return w.to, encodeHeld(refs, g.Nodes())
}

// encodeHeld writes which of so many nodes inputs have: how many they are, and how many the last two parts have; then where
// the nodes of each input begin, and these; of each node the first input that has it; which nodes several have, where the
// inputs of each begin, and these.
func encodeHeld(refs [][]uint32, nodes int) []byte {
	holders := make([][]uint32, nodes)
	starts, all := []uint32{0}, []uint32{}
	for n, of := range refs {
		all = append(all, of...)
		starts = append(starts, uint32(len(all)))
		for _, r := range of {
			holders[r] = append(holders[r], uint32(n))
		}
	}
	var owners, shared, sharers []uint32
	sharedStarts := []uint32{0}
	for r, of := range holders {
		owners = append(owners, of[0])
		if len(of) > 1 {
			shared, sharers = append(shared, uint32(r)), append(sharers, of...)
			sharedStarts = append(sharedStarts, uint32(len(sharers)))
		}
	}
	var out []byte
	counts := []uint32{uint32(len(all)), uint32(len(shared)), uint32(len(sharers))}
	for _, part := range [][]uint32{counts, starts, all, owners, shared, sharedStarts, sharers} {
		for _, n := range part {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
	}
	return out
}

// decodeInputs reads the inputs of a snapshot of so many nodes, what they have of which is in the other section.
func decodeInputs(data, held []byte, nodes int) (*holdings, error) {
	r := &reader{from: data}
	n := r.count(10)
	h := &holdings{
		names: make([]string, n), digests: make([]uint64, n), states: make([]bool, n), section: held, places: uint32(nodes),
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

// read finds out, once, what is where in the section, and that nothing in it leads elsewhere.
func (h *holdings) read() error {
	h.once.Do(func() {
		if !h.cut() || !h.sound() {
			h.damage = ErrDamaged
		}
	})
	return h.damage
}

// cut finds the parts, and reports whether they are all of the section.
func (h *holdings) cut() bool {
	const counts = 3
	if len(h.section) < 4*counts {
		return false
	}
	count := numbers(h.section)
	nodes, shared, sharers := uint64(count.at(0)), uint64(count.at(1)), uint64(count.at(2))
	rest := h.section[4*counts:]
	sizes := []uint64{uint64(len(h.names)) + 1, nodes, uint64(h.places), shared, shared + 1, sharers}
	for i, part := range []*numbers{&h.starts, &h.nodes, &h.owners, &h.shared, &h.sharedStarts, &h.sharers} {
		if 4*sizes[i] > uint64(len(rest)) {
			return false
		}
		*part, rest = numbers(rest[:4*sizes[i]]), rest[4*sizes[i]:]
	}
	return len(rest) == 0
}

func (h *holdings) sound() bool {
	return h.starts.ascend(h.nodes.len()) && h.nodes.below(int(h.places)) && h.owners.below(len(h.names)) &&
		h.sharedStarts.ascend(h.sharers.len()) && h.sharers.below(len(h.names))
}

// find is the number of an input.
func (h *holdings) find(name string) (int, bool) { return slices.BinarySearch(h.names, name) }

// of are the nodes of an input.
func (h *holdings) of(n int) []graph.Ref {
	from, to := int(h.starts.at(n)), int(h.starts.at(n+1))
	out := make([]graph.Ref, to-from)
	for i := range out {
		out[i] = graph.Ref(h.nodes.at(from + i))
	}
	return out
}

// owner is the first input that has a node.
func (h *holdings) owner(r graph.Ref) int { return int(h.owners.at(int(r))) }

// holders calls each for the inputs that have a node, the owner first, until that is false.
func (h *holdings) holders(r graph.Ref, each func(input int) bool) {
	n := sort.Search(h.shared.len(), func(i int) bool { return h.shared.at(i) >= uint32(r) })
	if n == h.shared.len() || h.shared.at(n) != uint32(r) {
		each(h.owner(r))
		return
	}
	for i := h.sharedStarts.at(n); i < h.sharedStarts.at(n+1) && each(int(h.sharers.at(int(i)))); i++ {
	}
}

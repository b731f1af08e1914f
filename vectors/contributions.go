package vectors

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"

	"reconcile.dev/reconcile/vectors/graph"
)

// contributions records which input of a snapshot contributed which nodes. The node numbers stay encoded in the section,
// because an update needs those of few inputs.
type contributions struct {
	names   []string // of the inputs, sorted
	digests []uint64
	states  []bool // whether it states edges, provenances or conflicts

	section []byte
	places  uint32 // of nodes
	once    sync.Once
	damage  error
	// The parts of the section, see [encodeNodes].
	starts, nodes, owners, shared, sharedStarts, sharers numbers
}

// numbers are uint32, little-endian.
type numbers []byte

func (n numbers) len() int        { return len(n) / 4 }
func (n numbers) at(i int) uint32 { return binary.LittleEndian.Uint32(n[4*i:]) }

// ascend reports whether the numbers start with 0, never decrease, and end with last.
func (n numbers) ascend(last int) bool {
	for i := range n.len() - 1 {
		if n.at(i) > n.at(i+1) {
			return false
		}
	}
	return n.at(0) == 0 && n.at(n.len()-1) == uint32(last)
}

// below reports whether all numbers are smaller than a limit.
func (n numbers) below(limit int) bool {
	most := uint32(0)
	for i := range n.len() {
		most = max(most, n.at(i))
	}
	return n.len() == 0 || most < uint32(limit)
}

// encodeContributions encodes the inputs, and the nodes of each.
func encodeContributions(g *graph.Graph, a *assembly) (inputs, held []byte) {
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
			return e.Source != "" || a.owner[a.resolve(e.From)] != n
		}))
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok {
				refs[n] = append(refs[n], uint32(r))
			}
		}
	}
	return w.to, encodeNodes(refs, g.Nodes())
}

// encodeNodes encodes the nodes of each input, refs, for a graph with that many nodes: the number of all refs, and the
// numbers of shared nodes and of their inputs; then the start of each input's refs, and the refs; for each node its first
// input; the shared nodes, the start of each one's inputs, and these inputs.
func encodeNodes(refs [][]uint32, nodes int) []byte {
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

// decodeInputs decodes the inputs of a snapshot with that many nodes. Their nodes are in the section held.
func decodeInputs(data, held []byte, nodes int) (*contributions, error) {
	r := &reader{from: data}
	n := r.count(10)
	h := &contributions{
		names: make([]string, n), digests: make([]uint64, n), states: make([]bool, n), section: held, places: uint32(nodes),
	}
	all := string(data) // the names are substrings of it
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

// read splits the section once, and checks that all its numbers are in range.
func (h *contributions) read() error {
	h.once.Do(func() {
		if !h.split() || !h.sound() {
			h.damage = ErrDamaged
		}
	})
	return h.damage
}

// split finds the parts, and reports whether they fill the section.
func (h *contributions) split() bool {
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

func (h *contributions) sound() bool {
	return h.starts.ascend(h.nodes.len()) && h.nodes.below(int(h.places)) && h.owners.below(len(h.names)) &&
		h.sharedStarts.ascend(h.sharers.len()) && h.sharers.below(len(h.names))
}

// findInput returns the number of an input.
func (h *contributions) findInput(name string) (int, bool) { return slices.BinarySearch(h.names, name) }

// nodesOf returns the nodes of an input.
func (h *contributions) nodesOf(n int) []graph.Ref {
	from, to := int(h.starts.at(n)), int(h.starts.at(n+1))
	out := make([]graph.Ref, to-from)
	for i := range out {
		out[i] = graph.Ref(h.nodes.at(from + i))
	}
	return out
}

// owner returns the first input that has a node.
func (h *contributions) owner(r graph.Ref) int { return int(h.owners.at(int(r))) }

// holders calls each with the inputs that have a node, the owner first, until it returns false.
func (h *contributions) holders(r graph.Ref, each func(input int) bool) {
	n := sort.Search(h.shared.len(), func(i int) bool { return h.shared.at(i) >= uint32(r) })
	if n == h.shared.len() || h.shared.at(n) != uint32(r) {
		each(h.owner(r))
		return
	}
	for i := h.sharedStarts.at(n); i < h.sharedStarts.at(n+1) && each(int(h.sharers.at(int(i)))); i++ {
	}
}

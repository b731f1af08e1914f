package vectors

import (
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/graph"
)

// contributions records which input of a snapshot contributed which nodes. This table is read on demand, because
// only an update needs it.
type contributions struct {
	names   []string // of the inputs, sorted
	digests []uint64
	states  []bool // whether it states edges, provenances or conflicts

	once   sync.Once
	damage error
	// Each of these is a section, in this order: the nodes of all inputs, and where those of each begin; the first input of
	// each node; the nodes of several inputs, all of their inputs, and where those of each begin.
	starts, nodes, owners, shared, sharedStarts, sharers []uint32
}

func (h *contributions) sections() []*[]uint32 {
	return []*[]uint32{&h.starts, &h.nodes, &h.owners, &h.shared, &h.sharedStarts, &h.sharers}
}

// inputsAscend reports whether the numbers are n+1, start with 0, never decrease, and end with last.
func inputsAscend(numbers []uint32, n, last int) bool {
	return len(numbers) == n+1 && numbers[0] == 0 && numbers[n] == uint32(last) && slices.IsSorted(numbers)
}

// belowInputs reports whether all numbers are smaller than a limit.
func belowInputs(numbers []uint32, limit int) bool {
	return len(numbers) == 0 || slices.Max(numbers) < uint32(limit)
}

// addContributions adds the inputs, and the nodes of each.
func addContributions(g *graph.Graph, a *assembly, c *parts) {
	states := make([]bool, len(a.inputs))
	for _, f := range a.facts {
		states[f.input] = true
	}
	w := &contributionWriter{}
	w.Uint(uint64(len(a.inputs)))
	refs := make([][]uint32, len(a.inputs))
	for n, in := range a.inputs {
		w.String(in.Name)
		w.Fixed(in.Digest)
		w.Bool(states[n] || slices.ContainsFunc(in.Edges, func(e graph.Edge) bool {
			return e.Source != "" || a.owner[a.resolve(e.From)] != n
		}))
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok {
				refs[n] = append(refs[n], uint32(r))
			}
		}
	}
	c.add(sectionInputs, w.B)
	for i, numbers := range contributed(refs, g.Nodes()).sections() {
		c.add(sectionContributions+i, sections.Raw(*numbers))
	}
}

// contributed returns the nodes of each input, refs, for a graph with that many nodes.
func contributed(refs [][]uint32, nodes int) *contributions {
	holders := make([][]uint32, nodes)
	h := &contributions{starts: []uint32{0}, sharedStarts: []uint32{0}}
	for n, of := range refs {
		h.nodes = append(h.nodes, of...)
		h.starts = append(h.starts, uint32(len(h.nodes)))
		for _, r := range of {
			holders[r] = append(holders[r], uint32(n))
		}
	}
	for r, of := range holders {
		h.owners = append(h.owners, of[0])
		if len(of) > 1 {
			h.shared, h.sharers = append(h.shared, uint32(r)), append(h.sharers, of...)
			h.sharedStarts = append(h.sharedStarts, uint32(len(h.sharers)))
		}
	}
	return h
}

// decodeInputs decodes the inputs of a snapshot.
func decodeInputs(data []byte) (*contributions, error) {
	r := newReader(data)
	n := r.Count(10)
	h := &contributions{names: make([]string, n), digests: make([]uint64, n), states: make([]bool, n)}
	all := string(data) // the names are substrings of it
	for i := range h.names {
		size := r.Count(1)
		at := len(data) - len(r.B)
		h.names[i] = all[at : at+size]
		r.B = r.B[size:]
		h.digests[i], h.states[i] = r.Fixed(), r.Bool()
	}
	if !r.Done() || !slices.IsSorted(h.names) {
		return nil, ErrDamaged
	}
	return h, nil
}

// read reads the nodes of each input once, and checks that all numbers are in range; the graph has that many nodes.
func (h *contributions) read(f *sections.File, nodes int) error {
	h.once.Do(func() {
		for i, numbers := range h.sections() {
			*numbers = sections.Numbers[uint32](f.Get(sectionContributions + i))
		}
		if !h.sound(nodes) {
			h.damage = ErrDamaged
		}
	})
	return h.damage
}

func (h *contributions) sound(nodes int) bool {
	return inputsAscend(h.starts, len(h.names), len(h.nodes)) && belowInputs(h.nodes, nodes) &&
		len(h.owners) == nodes && belowInputs(h.owners, len(h.names)) &&
		inputsAscend(h.sharedStarts, len(h.shared), len(h.sharers)) && belowInputs(h.sharers, len(h.names))
}

// findInput returns the number of an input.
func (h *contributions) findInput(name string) (int, bool) { return slices.BinarySearch(h.names, name) }

// nodesOf returns the nodes of an input.
func (h *contributions) nodesOf(n int) []uint32 { return h.nodes[h.starts[n]:h.starts[n+1]] }

// owner returns the first input that has a node.
func (h *contributions) owner(r graph.Ref) int { return int(h.owners[r]) }

// holders calls each with the inputs that have a node, the owner first, until it returns false.
func (h *contributions) holders(r graph.Ref, each func(input int) bool) {
	n, found := slices.BinarySearch(h.shared, uint32(r))
	if !found {
		each(h.owner(r))
		return
	}
	for _, input := range h.sharers[h.sharedStarts[n]:h.sharedStarts[n+1]] {
		if !each(int(input)) {
			return
		}
	}
}

package vectors

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// delta is what is different from the snapshot, by input.
type delta struct {
	inputs  map[string]*changed
	vectors map[string][]float32 // of items with a text that is not the snapshot's, by id
}

// changed is an input that came, changed or went.
type changed struct {
	digest uint64
	gone   bool
	graph.Part
}

func (d *delta) clone() *delta {
	if d == nil {
		return &delta{inputs: map[string]*changed{}, vectors: map[string][]float32{}}
	}
	return &delta{maps.Clone(d.inputs), maps.Clone(d.vectors)}
}

// changes are the inputs in the order of their names.
func (d *delta) changes() []*changed {
	out := make([]*changed, 0, len(d.inputs))
	for _, name := range slices.Sorted(maps.Keys(d.inputs)) {
		out = append(out, d.inputs[name])
	}
	return out
}

// items are all items of the delta, sorted by id, each once.
func (d *delta) items() []*graph.Item {
	var out []*graph.Item
	for _, c := range d.changes() {
		for i := range c.Items {
			out = append(out, &c.Items[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *graph.Item) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b *graph.Item) bool { return a.ID == b.ID })
}

// encode is the section of a delta.
func (d *delta) encode() []byte {
	w := &writer{}
	w.number(uint64(len(d.inputs)))
	for _, name := range slices.Sorted(maps.Keys(d.inputs)) {
		c := d.inputs[name]
		w.string(name)
		w.fixed(c.digest)
		gone := uint64(0)
		if c.gone {
			gone = 1
		}
		w.number(gone)
		w.number(uint64(len(c.Items)))
		for i := range c.Items {
			it := &c.Items[i]
			w.node(&it.Node)
			w.string(it.Title)
			w.string(it.Body)
		}
		w.number(uint64(len(c.Edges)))
		for i := range c.Edges {
			w.edge(&c.Edges[i])
		}
	}
	w.number(uint64(len(d.vectors)))
	for _, id := range slices.Sorted(maps.Keys(d.vectors)) {
		w.string(id)
		w.number(uint64(len(d.vectors[id])))
		for _, x := range d.vectors[id] {
			w.number(uint64(math.Float32bits(x)))
		}
	}
	return w.to
}

func decodeDelta(data []byte) (*delta, error) {
	d := (*delta)(nil).clone()
	r := &reader{from: data}
	for range r.count(12) {
		name := r.string()
		c := &changed{digest: r.fixed(), gone: r.number() == 1}
		for range r.count(20) {
			c.Items = append(c.Items, graph.Item{Node: r.node(), Title: r.string(), Body: r.string()})
		}
		for range r.count(5) {
			c.Edges = append(c.Edges, r.edge())
		}
		d.inputs[name] = c
	}
	for range r.count(2) {
		id := r.string()
		v := make([]float32, r.count(1))
		for i := range v {
			v[i] = math.Float32frombits(uint32(r.number()))
		}
		d.vectors[id] = v
	}
	if r.bad || len(r.from) > 0 {
		return nil, ErrDamaged
	}
	return d, nil
}

// Delta is what is different from the snapshot, as bytes one after the other; nil if there is no difference, and then
// there is to be no delta file.
func (x *Index) Delta() [][]byte {
	if x.delta == nil || len(x.delta.inputs) == 0 {
		return nil
	}
	c := &container{}
	meta := Meta{Base: x.base.sum, Inputs: x.Inputs()}
	c.add(sectionMeta, meta.encode())
	c.add(sectionDelta, x.delta.encode())
	return c.parts()
}

// merge makes one graph of the snapshot's and the delta.
func (x *Index) merge() error {
	d := x.delta
	items := d.items()
	m := &merging{Index: x, news: map[string]bool{}, aliases: map[string]string{}, gone: map[string]bool{}}
	for _, it := range items {
		m.news[it.ID] = true
		if a, ok := source.Alias(it.ID); ok && m.aliases[a] == "" {
			m.aliases[a] = it.ID
		}
	}
	inputs, err := x.snapshotInputs()
	if err != nil {
		return err
	}
	change := graph.Change{}
	for name := range d.inputs {
		for _, r := range inputs[name].nodes {
			if id := x.baseGraph.ID(r); !m.news[id] {
				m.gone[id] = true
			}
		}
	}
	change.Remove = slices.Sorted(maps.Keys(m.gone))
	for _, it := range items {
		change.Nodes = append(change.Nodes, it.Node)
	}
	if change.Edges, err = m.edges(); err != nil {
		return err
	}
	x.graph, _ = x.baseGraph.With(change) // what the rules refuse is left out, as Build does it
	return nil
}

// merging resolves the ends of edges in a snapshot with a delta.
type merging struct {
	*Index
	news    map[string]bool
	aliases map[string]string
	gone    map[string]bool
}

// edges are those of the delta, those of the snapshot whose end is there now, and those whose end has moved to another
// file of its folder.
func (m *merging) edges() ([]graph.Edge, error) {
	var out []graph.Edge
	take := func(e graph.Edge) {
		from, to := m.resolve(e.From), m.resolve(e.To)
		if from != "" && to != "" {
			e.From, e.To = from, to
			out = append(out, e)
		}
	}
	for _, c := range m.delta.changes() {
		for _, e := range c.Edges {
			take(e)
		}
	}
	open, err := decodeEdges(m.base.get(sectionOpen))
	if err != nil {
		return nil, err
	}
	for _, e := range open {
		if !m.gone[e.From] && !m.news[e.From] {
			take(e)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		r, found := m.baseGraph.Find(id)
		alias, named := source.Alias(id)
		if !found || !named || m.aliases[alias] == "" {
			continue
		}
		for _, e := range m.baseGraph.Incoming(r) {
			if !m.news[e.From] {
				e.To = alias
				take(e)
			}
		}
	}
	return out, nil
}

// resolve is the id of a node that there is, "" if there is none.
func (m *merging) resolve(id string) string {
	if m.news[id] {
		return id
	}
	if source.IsAlias(id) {
		if to := m.aliases[id]; to != "" {
			return to
		}
		id = m.baseAlias(id)
	}
	if _, ok := m.baseGraph.Find(id); ok && !m.gone[id] {
		return id
	}
	return ""
}

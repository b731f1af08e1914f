package vectors

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
)

// delta is the difference from the snapshot, by input.
type delta struct {
	inputs map[string]*changed
	near   *deltaVectors // vectors of texts that are not the snapshot's; nil without any
}

// changed is an input that was added, changed or removed.
type changed struct {
	digest uint64
	gone   bool
	graph.Part
	facts
}

func (d *delta) clone() *delta {
	if d == nil {
		return &delta{inputs: map[string]*changed{}}
	}
	return &delta{maps.Clone(d.inputs), d.near}
}

// encode is the section of a delta.
func (d *delta) encode() []byte {
	w := &contributionWriter{}
	w.Uint(uint64(len(d.inputs)))
	for _, name := range slices.Sorted(maps.Keys(d.inputs)) {
		c := d.inputs[name]
		w.String(name)
		w.Fixed(c.digest)
		w.Bool(c.gone)
		w.Uint(uint64(len(c.Items)))
		for i := range c.Items {
			it := &c.Items[i]
			w.node(&it.Node)
			w.String(it.Title)
			w.String(it.Body)
		}
		w.Uint(uint64(len(c.Edges)))
		for i := range c.Edges {
			w.edge(&c.Edges[i])
		}
		w.facts(&c.facts)
	}
	return w.B
}

// decodeDelta reads a delta without its vectors.
func decodeDelta(data []byte) (*delta, error) {
	d := (*delta)(nil).clone()
	r := newReader(data)
	for range r.Count(14) {
		name := r.String()
		c := &changed{digest: r.Fixed(), gone: r.Bool()}
		for range r.Count(26) {
			c.Items = append(c.Items, graph.Item{Node: r.node(), Title: r.String(), Body: r.String()})
		}
		for range r.Count(5) {
			c.Edges = append(c.Edges, r.edge())
		}
		c.facts = r.facts()
		d.inputs[name] = c
	}
	if !r.Done() {
		return nil, ErrDamaged
	}
	return d, nil
}

// Delta returns the encoded difference from the snapshot, in parts; nil if there is no difference, and then no delta
// file is needed.
func (x *Index) Delta() [][]byte {
	if x.Stored.delta == nil {
		return nil
	}
	c := &parts{}
	meta := Meta{Base: x.Stored.base.Sum(), Inputs: x.Stored.Inputs()}
	c.add(sectionMeta, meta.encode())
	c.add(sectionDelta, x.Stored.delta.encode())
	if x.Stored.delta.near != nil {
		c.add(sectionVectors, x.Stored.delta.near.bytes)
	}
	var out [][]byte
	_ = c.content().Write(func(b []byte) error {
		out = append(out, b)
		return nil
	}) // all of it is in memory, and stays there
	return out
}

// digests are those of the texts of a delta that has vectors, by id: of several the one of the input whose name comes
// first.
func (d *delta) digests() map[string]uint64 {
	out := map[string]uint64{}
	if d.vectors() == nil {
		return out
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(d.inputs))) {
		items := d.inputs[name].Items
		for i := range items {
			out[items[i].ID] = items[i].Digest
		}
	}
	return out
}

// hasSame reports whether the snapshot has an item with the same text.
func (s *Stored) hasSame(it *graph.Item) bool {
	r, ok := s.baseGraph.Find(it.ID)
	if !ok {
		return false
	}
	name, digest := s.baseGraph.NameAndDigest(r)
	return digest == it.Digest && name == it.Name && s.baseGraph.Type(r) == it.Type
}

// trim drops facts that a graph cannot hold, and texts that the snapshot has.
func (s *Stored) trim(p graph.Part) graph.Part {
	p.Items = slices.DeleteFunc(slices.Clone(p.Items), func(it graph.Item) bool {
		err := graph.CheckNode(&it.Node)
		if err != nil {
			s.Warn(err)
		}
		return err != nil
	})
	for i := range p.Items {
		if it := &p.Items[i]; s.hasSame(it) {
			it.Title, it.Body = "", ""
		}
	}
	return p
}

package vectors

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
)

// delta is the difference from the snapshot, by input.
type delta struct {
	inputs map[string]*changed
	near   *deltaVectors // vectors of texts that are not the snapshot's; nil if there are none
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

// vectors returns the index of the delta's vectors; nil if it has none.
func (d *delta) vectors() *knn.Index {
	if d == nil || d.near == nil {
		return nil
	}
	return d.near.Index
}

// encode is the section of a delta.
func (d *delta) encode() []byte {
	w := &writer{}
	w.number(uint64(len(d.inputs)))
	for _, name := range slices.Sorted(maps.Keys(d.inputs)) {
		c := d.inputs[name]
		w.string(name)
		w.fixed(c.digest)
		w.flag(c.gone)
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
		w.facts(&c.facts)
	}
	return w.to
}

// decodeDelta reads a delta without its vectors.
func decodeDelta(data []byte) (*delta, error) {
	d := (*delta)(nil).clone()
	r := &reader{from: data}
	for range r.count(14) {
		name := r.string()
		c := &changed{digest: r.fixed(), gone: r.flag()}
		for range r.count(26) {
			c.Items = append(c.Items, graph.Item{Node: r.node(), Title: r.string(), Body: r.string()})
		}
		for range r.count(5) {
			c.Edges = append(c.Edges, r.edge())
		}
		c.facts = r.facts()
		d.inputs[name] = c
	}
	if r.bad || len(r.from) > 0 {
		return nil, ErrDamaged
	}
	return d, nil
}

// Delta returns the encoded difference from the snapshot, in parts; nil if there is no difference, and then no delta
// file is needed.
func (x *Index) Delta() [][]byte {
	if x.delta == nil {
		return nil
	}
	c := &container{}
	meta := Meta{Base: x.base.sum, Inputs: x.Inputs()}
	c.add(sectionMeta, meta.encode())
	c.add(sectionDelta, x.delta.encode())
	if x.delta.near != nil {
		c.add(sectionVectors, x.delta.near.bytes)
	}
	return c.parts()
}

package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Index answers questions about all that was indexed. It never changes, and is safe for concurrent use; Update makes the
// next one.
type Index struct {
	Options
	meta      Meta
	base      *container
	data      []byte // of the snapshot
	baseGraph *graph.Graph
	baseWords *lexical.Index
	held      *holdings
	topics    *filter.Set    // of the snapshot
	near      *knn.Index     // nil if there are no vectors
	slotted   []byte         // places of the nodes of the vectors, by slot, 4 bytes each
	embedder  embed.Embedder // nil: none that belongs to the vectors

	delta  *delta // nil if there is none
	graph  *graph.Graph
	known  *filter.Set // the terms of both
	words  *lexical.Set
	docs   []graph.Ref // of the texts that are not the snapshot's, by their number behind those
	live   *knn.Bitmap // slots of near that may be found; nil: all
	nearer *knn.Index  // of the delta; nil if there are none
	lacks  bool        // it has texts that should have vectors
}

// Open takes the bytes of a snapshot, which are used as they are and must not change, and of the delta beside it, nil if
// there is none. A delta of another snapshot is passed over. The error is ErrDamaged, or ErrOtherModel: then it is to be
// built anew.
func Open(snapshot, changes []byte, o Options) (*Index, error) {
	x := &Index{Options: o.withDefaults(), data: snapshot}
	if err := x.openBase(); err != nil {
		return nil, err
	}
	if err := x.openDelta(changes); err != nil {
		return nil, err
	}
	if x.delta == nil {
		return x, x.ready(nil)
	}
	m, err := x.merge(func(error) {}) // who made the delta was warned
	if err != nil {
		return nil, damaged(err)
	}
	return x, x.ready(m)
}

func (x *Index) openBase() (err error) {
	if x.base, err = openContainer(x.data, x.Sound); err != nil {
		return err
	}
	if x.meta, err = x.base.meta(); err != nil {
		return err
	}
	if x.baseGraph, err = graph.Open(x.base.get(sectionGraph)); err != nil {
		return damaged(err)
	}
	if x.baseWords, err = lexical.Open(x.base.get(sectionWords)); err != nil {
		return damaged(err)
	}
	if x.baseWords.Docs() != x.baseGraph.Nodes() {
		return ErrDamaged
	}
	if x.held, err = decodeHoldings(x.base.get(sectionHoldings), x.baseGraph.Nodes()); err != nil {
		return err
	}
	if x.topics, err = filter.Open(x.base.get(sectionTopics)); err != nil {
		return damaged(err)
	}
	return x.openVectors()
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// ErrOtherModel says that vectors are of another embedder than the one that is wanted now: vectors of two are never
// mixed.
var ErrOtherModel = errors.New("the index was made with another embedder")

func (x *Index) openVectors() (err error) {
	if x.meta.Model == "" {
		return nil
	}
	x.embedder = x.Embedder
	if x.embedder == nil {
		trained, err := embed.Open(x.base.get(sectionEmbedder))
		if err != nil {
			return damaged(err)
		}
		x.embedder = trained
	}
	if x.embedder.Model() != x.meta.Model || x.meta.Dims != x.Dims {
		return fmt.Errorf("%w: %s with %d numbers, and now it is %s with %d", ErrOtherModel, x.meta.Model, x.meta.Dims,
			x.embedder.Model(), x.Dims)
	}
	if x.near, err = knn.Open(x.base.get(sectionVectors)); err != nil {
		return damaged(err)
	}
	x.slotted = x.base.get(sectionPlaces)
	if x.near.Dims() != x.meta.Dims || len(x.slotted) != 4*x.near.Slots() {
		return ErrDamaged
	}
	return nil
}

func (x *Index) openDelta(data []byte) error {
	if data == nil {
		return nil
	}
	c, err := openContainer(data, true) // one that is used is verified below
	if err != nil {
		return err
	}
	m, err := c.meta()
	if err != nil || m.Base != x.base.sum {
		return err
	}
	if err := c.verify(data); err != nil {
		return err
	}
	if x.delta, err = decodeDelta(c.get(sectionDelta)); err != nil {
		return err
	}
	x.delta.near, err = x.openNearer(c.get(sectionVectors))
	return err
}

// ready makes what is searched, of the snapshot and the delta, which m compared; nil if there is no delta.
func (x *Index) ready(m *merging) (err error) {
	x.graph, x.known = x.baseGraph, x.topics
	base := lexical.Segment{Index: x.baseWords}
	if m == nil {
		x.words, err = lexical.NewSet(base)
		return err
	}
	if x.graph, err = m.graph(); err != nil {
		return err
	}
	fresh := m.fresh()
	for _, it := range fresh {
		r, ok := x.graph.Find(it.ID)
		if !ok {
			return ErrDamaged // Update refuses what a graph cannot have
		}
		x.docs = append(x.docs, r)
	}
	passed := m.passedOver(fresh)
	for r := range passed {
		base.Deleted.Add(int(r))
	}
	words, err := lexical.Build(documents(fresh))
	if err != nil {
		return err
	}
	if x.words, err = lexical.NewSet(base, lexical.Segment{Index: words}); err != nil {
		return damaged(err)
	}
	known, err := topics(words, fresh)
	if err != nil {
		return damaged(err)
	}
	x.known = x.topics.With(known)
	x.live = x.slotsBut(passed)
	if x.delta.near != nil {
		x.nearer = x.delta.near.Index
	}
	x.lacks = x.lacking(fresh)
	return nil
}

// passedOver are the texts of the snapshot that went or were replaced.
func (m *merging) passedOver(fresh []*graph.Item) map[graph.Ref]bool {
	out := map[graph.Ref]bool{}
	take := func(id string) {
		if r, ok := m.baseGraph.Find(id); ok {
			out[r] = true
		}
	}
	for id := range m.gone {
		take(id)
	}
	for _, it := range fresh {
		take(it.ID)
	}
	return out
}

// Known are the digests of all inputs by name, as they were taken in.
func (x *Index) Known() map[string]uint64 {
	out := make(map[string]uint64, len(x.held.names))
	for n, name := range x.held.names {
		out[name] = x.held.digests[n]
	}
	if x.delta == nil {
		return out
	}
	for name, c := range x.delta.inputs {
		if c.gone {
			delete(out, name)
		} else {
			out[name] = c.digest
		}
	}
	return out
}

// Inputs is the digest of all inputs, see [DigestInputs].
func (x *Index) Inputs() uint64 {
	var inputs []Input
	for name, digest := range x.Known() {
		inputs = append(inputs, Input{Name: name, Digest: digest})
	}
	return DigestInputs(inputs)
}

// Update is the index after some inputs came or changed and others, by name, went. Texts are embedded if the snapshot
// has no vector of them; when the embedder cannot be had they are found by their words, and that is a warning. The error
// is that of the context, ErrRebuild, or ErrDamaged.
func (x *Index) Update(ctx context.Context, inputs []Input, gone []string) (*Index, error) {
	next := &Index{
		Options: x.Options, meta: x.meta, base: x.base, data: x.data, baseGraph: x.baseGraph, baseWords: x.baseWords,
		held: x.held, topics: x.topics, near: x.near, slotted: x.slotted, embedder: x.embedder, delta: x.delta.clone(),
	}
	for _, name := range gone {
		next.delta.inputs[name] = &changed{gone: true}
		if _, ok := x.held.find(name); !ok {
			delete(next.delta.inputs, name)
		}
	}
	for i := range inputs {
		in := &inputs[i]
		if n, ok := x.held.find(in.Name); ok && x.held.digests[n] == in.Digest {
			delete(next.delta.inputs, in.Name) // it is as in the snapshot again
			continue
		}
		next.delta.inputs[in.Name] = &changed{digest: in.Digest, Part: next.trim(in.Part), facts: in.facts()}
	}
	if len(next.delta.inputs) == 0 {
		next.delta = nil
		return next, next.ready(nil)
	}
	m, err := next.merge(next.Warn)
	if err != nil {
		return nil, err
	}
	if err := next.embedChanges(ctx, m.fresh(), x); err != nil {
		return nil, err
	}
	return next, next.ready(m)
}

// trim leaves out what a graph cannot have, and the texts that the snapshot has.
func (x *Index) trim(p graph.Part) graph.Part {
	p.Items = slices.DeleteFunc(slices.Clone(p.Items), func(it graph.Item) bool {
		err := graph.CheckNode(&it.Node)
		if err != nil {
			x.Warn(err)
		}
		return err != nil
	})
	for i := range p.Items {
		if it := &p.Items[i]; x.hasSame(it) {
			it.Title, it.Body = "", ""
		}
	}
	return p
}

// Changed is how many texts and nodes are not as in the snapshot: when they are many, it is to be compacted.
func (x *Index) Changed() int { return max(len(x.docs), x.graph.Changed()) }

// Graph is the graph of everything.
func (x *Index) Graph() *graph.Graph { return x.graph }

// Meta is what the snapshot says of itself.
func (x *Index) Meta() Meta { return x.meta }

// Verify checks all of the snapshot, also what is otherwise checked as it is used.
func (x *Index) Verify() error {
	if err := x.base.verify(x.data); err != nil {
		return err
	}
	if err := errors.Join(x.baseGraph.Verify(), x.baseWords.Verify()); err != nil {
		return damaged(err)
	}
	if x.near != nil {
		if err := x.near.Verify(); err != nil {
			return damaged(err)
		}
		if !x.placesSound() {
			return ErrDamaged
		}
	}
	return nil
}

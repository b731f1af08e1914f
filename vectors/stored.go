package vectors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Stored is what a snapshot and the delta beside it hold, as far as it takes to tell what was taken in, and to take changes
// in. It never changes, and is safe for concurrent use. To join the two takes as long as the delta is large, and is left
// to what needs it: Ready makes the index, Update that of the next delta.
type Stored struct {
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
	delta     *delta         // nil if there is none
}

// Load takes the bytes of a snapshot, which are used as they are and must not change, and of the delta beside it, nil if
// there is none. A delta of another snapshot is passed over. The error is ErrDamaged, ErrOtherModel or ErrOtherLinks: then
// it is to be built anew.
//
// Unless the snapshot is known to be sound it is compared with its sums, but for the vectors, which are the most of it: they
// can be used, and whether what they find is right, Confirm tells.
func Load(snapshot, changes []byte, o Options) (*Stored, error) {
	s := &Stored{Options: o.withDefaults(), data: snapshot}
	if err := s.openBase(); err != nil {
		return nil, err
	}
	if err := s.openDelta(changes); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stored) openBase() (err error) {
	if s.base, err = openContainer(s.data, s.Sound); err != nil {
		return err
	}
	if s.meta, err = s.base.meta(); err != nil {
		return err
	}
	if s.baseGraph, err = graph.Open(s.base.get(sectionGraph)); err != nil {
		return damaged(err)
	}
	if s.baseWords, err = lexical.Open(s.base.get(sectionWords)); err != nil {
		return damaged(err)
	}
	if s.baseWords.Docs() != s.baseGraph.Nodes() {
		return ErrDamaged
	}
	s.held, err = decodeInputs(s.base.get(sectionInputs), s.base.get(sectionHoldings), s.baseGraph.Nodes())
	if err != nil {
		return err
	}
	if s.topics, err = filter.Open(s.base.get(sectionTopics)); err != nil {
		return damaged(err)
	}
	return s.openVectors()
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// ErrOtherModel says that vectors are of another embedder than the one that is wanted now: vectors of two are never
// mixed.
var ErrOtherModel = errors.New("the index was made with another embedder")

// ErrOtherLinks says that vectors are linked in another way than is wanted now.
var ErrOtherLinks = errors.New("the links of the index were made with other settings")

func (s *Stored) openVectors() (err error) {
	if s.meta.Model == "" {
		return nil
	}
	s.embedder = s.Embedder
	if s.embedder == nil {
		trained, err := embed.Open(s.base.get(sectionEmbedder))
		if err != nil {
			return damaged(err)
		}
		s.embedder = trained
	}
	if s.embedder.Model() != s.meta.Model || s.meta.Dims != s.Dims {
		return fmt.Errorf("%w: %s with %d numbers, and now it is %s with %d", ErrOtherModel, s.meta.Model, s.meta.Dims,
			s.embedder.Model(), s.Dims)
	}
	if s.near, err = knn.Open(s.base.get(sectionVectors)); err != nil {
		return damaged(err)
	}
	s.slotted = s.base.get(sectionPlaces)
	if s.near.Dims() != s.meta.Dims || len(s.slotted) != 4*s.near.Slots() {
		return ErrDamaged
	}
	if made := s.near.Options(); made.M != s.M || made.EfConstruction != s.EfConstruction {
		return fmt.Errorf("%w: m %d and efConstruction %d, and now it is %d and %d", ErrOtherLinks, made.M, made.EfConstruction,
			s.M, s.EfConstruction)
	}
	return nil
}

func (s *Stored) openDelta(data []byte) error {
	if data == nil {
		return nil
	}
	c, err := openContainer(data, true) // one that is used is verified below
	if err != nil {
		return err
	}
	m, err := c.meta()
	if err != nil || m.Base != s.base.sum {
		return err
	}
	if err := c.verify(data); err != nil {
		return err
	}
	if s.delta, err = decodeDelta(c.get(sectionDelta)); err != nil {
		return err
	}
	s.delta.near, err = s.openNearer(c.get(sectionVectors))
	return err
}

// Confirm compares what Load left out with its sum, which takes as long as to read it. The error is ErrDamaged.
func (s *Stored) Confirm() error {
	for i := range s.base.sections {
		if v := &s.base.sections[i]; v.kind == sectionVectors && !v.sound() {
			return ErrDamaged
		}
	}
	return nil
}

// Meta is what the snapshot says of itself.
func (s *Stored) Meta() Meta { return s.meta }

// Known goes through all inputs in the order of their names, with their digests as they were taken in.
func (s *Stored) Known() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		var changed []string
		if s.delta != nil {
			changed = slices.Sorted(maps.Keys(s.delta.inputs))
		}
		next := func() bool { // of the delta
			c := s.delta.inputs[changed[0]]
			more := c.gone || yield(changed[0], c.digest)
			changed = changed[1:]
			return more
		}
		for n, name := range s.held.names {
			for len(changed) > 0 && changed[0] < name {
				if !next() {
					return
				}
			}
			same := len(changed) == 0 || changed[0] != name
			if same && !yield(name, s.held.digests[n]) || !same && !next() {
				return
			}
		}
		for len(changed) > 0 && next() {
		}
	}
}

// Inputs is the digest of all inputs, see [DigestInputs].
func (s *Stored) Inputs() uint64 { return digestOf(s.Known()) }

// Update is the index after some inputs came or changed and others, by name, went. Texts are embedded if the snapshot
// has no vector of them; when the embedder cannot be had they are found by their words, and that is a warning. The error
// is that of the context, ErrRebuild, or ErrDamaged.
func (s *Stored) Update(ctx context.Context, inputs []Input, gone []string) (*Index, error) {
	next := new(Stored)
	*next = *s
	next.delta = s.delta.clone()
	for _, name := range gone {
		next.delta.inputs[name] = &changed{gone: true}
		if _, ok := s.held.find(name); !ok {
			delete(next.delta.inputs, name)
		}
	}
	for i := range inputs {
		in := &inputs[i]
		if n, ok := s.held.find(in.Name); ok && s.held.digests[n] == in.Digest {
			delete(next.delta.inputs, in.Name) // it is as in the snapshot again
			continue
		}
		next.delta.inputs[in.Name] = &changed{digest: in.Digest, Part: next.trim(in.Part), facts: in.facts()}
	}
	if len(next.delta.inputs) == 0 {
		next.delta = nil
		return next.Ready()
	}
	m, err := next.merge(next.Warn)
	if err != nil {
		return nil, err
	}
	if err := next.embedChanges(ctx, m.fresh, s.delta); err != nil {
		return nil, err
	}
	return m.index()
}

// trim leaves out what a graph cannot have, and the texts that the snapshot has.
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

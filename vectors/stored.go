package vectors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Stored is a snapshot with its delta, opened only so far that the indexed inputs are known and changes can be applied. It
// never changes, and is safe for concurrent use. Joining the two takes time in proportion to the delta and is done on
// demand: Ready makes the index, Update that of the next delta.
type Stored struct {
	Options
	meta          Meta
	base          *sections.File
	baseGraph     *graph.Graph
	baseWords     *lexical.Index
	contributions *contributions
	topics        *filter.Set    // of the snapshot
	near          *knn.Index     // nil if the snapshot has no vectors
	slotted       []uint32       // places of the nodes of the vectors, by slot
	embedder      embed.Embedder // nil: none that belongs to the vectors
	delta         *delta         // nil if there is no delta
}

// Load opens the bytes of a snapshot, which are used in place and must not change, and of its delta, nil if there is
// none. A delta of another snapshot is ignored. The error is ErrDamaged, ErrOtherVersion, ErrOtherModel or ErrOtherLinks:
// then the index must be rebuilt.
//
// Unless the snapshot is known to be sound it is compared with its checksums, except for the vectors, which are most of
// it: they can be used at once, and Confirm reports whether they are sound.
func Load(snapshot, changes []byte, o Options) (*Stored, error) {
	s := &Stored{Options: o.withDefaults()}
	if err := s.openBase(snapshot); err != nil {
		return nil, err
	}
	if err := s.openDelta(changes); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stored) openBase(data []byte) (err error) {
	if s.base, err = openFile(data, s.Sound); err != nil {
		return err
	}
	if s.meta, err = metaOf(s.base); err != nil {
		return err
	}
	if s.baseGraph, err = graph.Open(s.base.Get(sectionGraph)); err != nil {
		return damaged(err)
	}
	if s.baseWords, err = lexical.Open(s.base.Get(sectionWords)); err != nil {
		return damaged(err)
	}
	if s.baseWords.Docs() != s.baseGraph.Nodes() {
		return ErrDamaged
	}
	if s.contributions, err = decodeInputs(s.base.Get(sectionInputs)); err != nil {
		return err
	}
	if s.topics, err = filter.Open(s.base.Get(sectionTopics)); err != nil {
		return damaged(err)
	}
	return s.openVectors()
}

// ErrOtherModel reports that the vectors are of another embedder than the requested one: vectors of two are never
// compared.
var ErrOtherModel = errors.New("the index was made with another embedder")

// ErrOtherLinks reports that the vectors were linked with other options than the requested ones.
var ErrOtherLinks = errors.New("the links of the index were made with other settings")

func (s *Stored) openVectors() (err error) {
	if s.meta.Model == "" {
		return nil
	}
	s.embedder = s.Embedder
	if s.embedder == nil {
		trained, err := embed.Open(s.base.Get(sectionEmbedder))
		if err != nil {
			return damaged(err)
		}
		s.embedder = trained
	}
	if s.embedder.Model() != s.meta.Model || s.meta.Dims != s.Dims {
		return fmt.Errorf("%w: %s with %d numbers, and now it is %s with %d", ErrOtherModel, s.meta.Model, s.meta.Dims,
			s.embedder.Model(), s.Dims)
	}
	if s.near, err = knn.Open(s.base.Get(sectionVectors)); err != nil {
		return damaged(err)
	}
	s.slotted = sections.Numbers[uint32](s.base.Get(sectionPlaces))
	if s.near.Dims() != s.meta.Dims || len(s.slotted) != s.near.Slots() {
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
	f, err := format.Open(data)
	if err != nil {
		return damaged(err) // of another version, too: the index is as good without it
	}
	m, err := metaOf(f)
	if err != nil || m.Base != s.base.Sum() {
		return err
	}
	if err := f.Verify(); err != nil {
		return damaged(err)
	}
	if s.delta, err = decodeDelta(f.Get(sectionDelta)); err != nil {
		return err
	}
	s.delta.near, err = s.openDeltaVectors(f.Get(sectionVectors))
	return err
}

// Confirm compares the vectors section of the stored snapshot, which Load leaves out, with its checksum. It takes as
// long as to read it. The error is ErrDamaged.
func (s *Stored) Confirm() error {
	if err := s.base.Check(sectionVectors); err != nil {
		return damaged(err)
	}
	return nil
}

// Meta returns the metadata of the stored snapshot.
func (s *Stored) Meta() Meta { return s.meta }

// Known iterates over the names and digests of all inputs of the stored snapshot and its delta, in the order of the
// names. A digest is that of the input when it was indexed.
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
		for n, name := range s.contributions.names {
			for len(changed) > 0 && changed[0] < name {
				if !next() {
					return
				}
			}
			same := len(changed) == 0 || changed[0] != name
			if same && !yield(name, s.contributions.digests[n]) || !same && !next() {
				return
			}
		}
		for len(changed) > 0 && next() {
		}
	}
}

// Inputs returns one digest of the names and digests of all known inputs, see [DigestInputs].
func (s *Stored) Inputs() uint64 { return digestOf(s.Known()) }

// Update returns the index after some inputs were added or changed, and others, by name, removed. It embeds the texts of
// which the snapshot has no vector; if the embedder is not available, they are found by their words, and Update warns.
// The error is that of the context, ErrRebuild, or ErrDamaged.
func (s *Stored) Update(ctx context.Context, inputs []Input, gone []string) (*Index, error) {
	next := new(Stored)
	*next = *s
	next.delta = s.delta.clone()
	for _, name := range gone {
		next.delta.inputs[name] = &changed{gone: true}
		if _, ok := s.contributions.findInput(name); !ok {
			delete(next.delta.inputs, name)
		}
	}
	for i := range inputs {
		in := &inputs[i]
		if n, ok := s.contributions.findInput(in.Name); ok && s.contributions.digests[n] == in.Digest {
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

// Open opens a stored snapshot and its changes as an index, by [Load] and [Stored.Ready].
func Open(snapshot, changes []byte, o Options) (*Index, error) {
	s, err := Load(snapshot, changes, o)
	if err != nil {
		return nil, err
	}
	return s.Ready()
}

// Ready merges the delta, if there is one, into the stored snapshot, and returns the index, which is ready for
// searches. The error is ErrDamaged.
func (s *Stored) Ready() (*Index, error) {
	if s.delta != nil {
		m, err := s.merge(func(error) {}) // who made the delta was warned
		if err != nil {
			return nil, damaged(err)
		}
		return m.index()
	}
	words, err := lexical.NewSet(lexical.Segment{Index: s.baseWords})
	if err != nil {
		return nil, damaged(err)
	}
	return &Index{Stored: s, graph: s.baseGraph, known: s.topics, words: words}, nil
}

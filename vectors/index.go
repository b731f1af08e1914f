package vectors

import (
	"errors"

	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Index answers questions about all that was indexed. It never changes, and is safe for concurrent use; Update makes the
// next one.
type Index struct {
	*Stored

	graph *graph.Graph
	known *filter.Set // the terms of both
	words *lexical.Set
	docs  []graph.Ref // of the texts that are not the snapshot's, by their number behind those
	live  *knn.Bitmap // slots of near that may be found; nil: all
	lacks bool        // it has texts that should have vectors
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

// index joins the snapshot and the delta for searching.
func (m *merging) index() (x *Index, err error) {
	x = &Index{Stored: m.stored}
	if x.graph, err = m.graph(); err != nil {
		return nil, err
	}
	for _, it := range m.fresh {
		r, ok := x.graph.Find(it.ID)
		if !ok {
			return nil, ErrDamaged // Update refuses what a graph cannot have
		}
		x.docs = append(x.docs, r)
	}
	passed := m.replacedTexts()
	base := lexical.Segment{Index: x.baseWords}
	for r := range passed {
		base.Deleted.Add(int(r))
	}
	words, err := lexical.Build(documents(m.fresh))
	if err != nil {
		return nil, err
	}
	if x.words, err = lexical.NewSet(base, lexical.Segment{Index: words}); err != nil {
		return nil, damaged(err)
	}
	known, err := topics(words, m.fresh)
	if err != nil {
		return nil, damaged(err)
	}
	x.known = x.topics.With(known)
	x.live = x.slotsExcept(passed)
	x.lacks = x.lacking(m.fresh)
	return x, nil
}

// Changed returns how many texts of the index, or nodes of its graph, have changed since the snapshot, whichever are
// more. If there are many, build a new snapshot.
func (x *Index) Changed() int { return max(len(x.docs), x.graph.Changed()) }

// Graph returns the graph of the index, which has all nodes of the snapshot and of the delta.
func (x *Index) Graph() *graph.Graph { return x.graph }

// Verify checks the base snapshot, its graph, its word index and its vectors for damage, including sections that are
// otherwise checked on their first use.
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

package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// ErrNoVectors is the warning of a search by meaning in an index that has no vectors.
var ErrNoVectors = errors.New("the index has no vectors: search went by words only; reconcile search index makes them")

// Mode is by what a search finds.
type Mode string

// The modes.
const (
	Hybrid  Mode = "hybrid"
	Vector  Mode = "vector"
	Lexical Mode = "lexical"
	// Related searches by vectors and then along edges, see [Query.Expansion].
	Related Mode = "related"
)

// Modes are all modes.
var Modes = []Mode{Hybrid, Vector, Lexical, Related}

// Query is a search request.
type Query struct {
	Text    string
	Mode    Mode             // "": Hybrid
	Domains []graph.Domain   // none: all
	Types   []graph.NodeType // none: all
	Labels  []string         // all of these, "key=value"
	Limit   int              // 0: 10
	// MinSimilarity is the least cosine of a result that is found by vectors only.
	MinSimilarity float32
	// Thorough looks at more candidates, Exact at all vectors.
	Thorough, Exact bool
	// Expansion configures how Related expands the results of vectors, and weighs them; its Max is ignored.
	Expansion graph.Expansion
}

// Found is one result.
type Found struct {
	graph.Node
	// Score is the sum of the reciprocal ranks, after what Named counts, or with Related the final score; it compares results of one answer.
	Score float64
	// The rank and the score in each ranking: BM25, cosine, and seed and graph score, see [graph.Result]. Rank 0: not
	// ranked.
	ByWords, ByVector, ByGraph Place
	// Named is how exactly the query is its name, see [Named]. Named results come first, unless the mode is vectors only.
	Named Named
	// whole reports that the query is one word that its text has.
	whole bool
	// Via are the edges over which it was found, from a result that was found by words or vectors.
	Via []graph.Edge
}

// Place is a position in a ranking.
type Place struct {
	Rank  int // from 1
	Score float64
}

// Answer is what a search found.
type Answer struct {
	// NoMatches reports that no text has any of the words, and that vectors found nothing.
	NoMatches bool
	Results   []Found
	// AlsoExistsIn are domains outside the query that have some of the words.
	AlsoExistsIn []graph.Domain
	// Warnings report parts of the index that could not be used.
	Warnings []error
}

const (
	defaultLimit = 10
	// candidates is the number of results of each ranking.
	candidates = 100
	// seeds is the number of best results that are expanded along edges.
	seeds = 20
	// smooth is the constant of reciprocal rank fusion.
	smooth = 60
	// graphShare weighs the ranking over edges: a neighbour of a result is less likely the answer than the result.
	graphShare = 0.25
)

// Search answers a query. The error is that of the context, or describes an invalid query.
func (x *Index) Search(ctx context.Context, q Query) (*Answer, error) {
	if q.Mode == "" {
		q.Mode = Hybrid
	}
	if !slices.Contains(Modes, q.Mode) {
		return nil, fmt.Errorf("%q is no mode of search; write hybrid, vector, lexical or related", q.Mode)
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	s := &search{index: x, Query: q, answer: &Answer{}, places: map[graph.Ref]*Found{}}
	exists := s.exists()
	if exists || s.knowsMore() {
		if err := s.run(ctx); err != nil {
			return nil, err
		}
	}
	s.answer.NoMatches = !exists && len(s.answer.Results) == 0
	return s.answer, nil
}

type search struct {
	index *Index
	Query
	answer *Answer
	places map[graph.Ref]*Found
	// likened reports that the vectors were searched.
	likened bool
	wanted  *graph.Set // unless all nodes are asked for; nil: not found out yet
}

// exists asks the filters which domains have any of the words. It is false if none of the requested domains has.
func (s *search) exists() bool {
	terms := lexical.Terms(s.Text)
	keys := []uint64{filter.Key(lexical.NameTerm(s.name()))}
	for _, t := range terms {
		keys = append(keys, filter.Key(t))
	}
	in := s.index.known.Probe(keys)
	wanted := func(d graph.Domain) bool {
		return s.Mode == Related || len(s.Domains) == 0 || slices.Contains(s.Domains, d)
	}
	any := false
	for _, d := range in {
		if wanted(d) {
			any = true
		} else {
			s.answer.AlsoExistsIn = append(s.answer.AlsoExistsIn, d)
		}
	}
	return any
}

// knowsMore reports whether a text without any of the words may match: the vectors are of an embedder that knows
// synonyms. The built-in one does not.
func (s *search) knowsMore() bool {
	return s.Mode != Lexical && s.index.Stored.near != nil && s.index.Stored.Embedder != nil
}

func (s *search) run(ctx context.Context) error {
	if s.Mode == Related {
		return s.byRelation(ctx)
	}
	if s.Mode != Vector {
		if err := s.byWords(); err != nil {
			return err
		}
	}
	if s.Mode != Lexical {
		if err := s.byVector(ctx); err != nil {
			return err
		}
	}
	if s.Mode == Hybrid {
		if err := s.byGraph(); err != nil {
			return err
		}
	}
	s.answer.Results = s.best()
	return nil
}

// accepts reports whether a node passes the filters.
func (s *search) accepts(r graph.Ref) bool {
	if s.all() {
		return s.acceptsType(s.index.graph.Type(r))
	}
	return s.selected().Has(r)
}

// selected returns the nodes that pass the filters.
func (s *search) selected() *graph.Set {
	if s.wanted == nil {
		s.wanted = s.index.graph.Select(s.acceptsType, s.Labels)
	}
	return s.wanted
}

// acceptsType reports whether nodes of a type pass the filters.
func (s *search) acceptsType(t graph.NodeType) bool {
	switch {
	case len(s.Types) > 0:
		return slices.Contains(s.Types, t) && (len(s.Domains) == 0 || slices.Contains(s.Domains, t.Domain()))
	case t == graph.Import:
		return false // a third-party package is rarely the intended result
	}
	return len(s.Domains) == 0 || slices.Contains(s.Domains, t.Domain())
}

// all reports whether every node passes the filters.
func (s *search) all() bool { return len(s.Domains)+len(s.Types)+len(s.Labels) == 0 }

func (s *search) byWords() error {
	accept := func(doc int) bool { return s.accepts(s.index.doc(doc)) }
	hits, err := s.index.words.Search(s.Text, max(candidates, s.Limit), accept)
	if err != nil {
		return damaged(err)
	}
	// Of equals the order must not depend on which of them are in the delta.
	slices.SortStableFunc(hits, func(a, b lexical.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), s.byID(s.index.doc(a.Doc), s.index.doc(b.Doc)))
	})
	whole, err := s.haveWord()
	if err != nil {
		return damaged(err)
	}
	for i, h := range hits {
		f := s.place(s.index.doc(h.Doc))
		f.ByWords, f.whole = Place{i + 1, float64(h.Score)}, whole.Has(h.Doc)
	}
	return s.byName()
}

// haveWord returns the texts that have the word of a hybrid search for one word, and none for several words. Parts of the word are
// not enough.
func (s *search) haveWord() (lexical.Bitmap, error) {
	if s.Mode != Hybrid || len(strings.Fields(s.Text)) != 1 {
		return nil, nil
	}
	return s.index.words.HaveAll(s.Text)
}

func (s *search) warn(err error) { s.answer.Warnings = append(s.answer.Warnings, err) }

// fuse returns the sum of the reciprocal ranks of a node, and more for a text that has the one word of the query. The rank by words
// of a node without a vector counts for meaning, too.
func (s *search) fuse(r graph.Ref) float64 {
	part := func(p Place, share float64) float64 {
		if p.Rank == 0 {
			return 0
		}
		return share / float64(smooth+p.Rank)
	}
	f := s.places[r]
	meaning := f.ByVector
	if s.likened && !hasVectors(s.index.graph.Type(r)) {
		meaning = f.ByWords
	}
	sum := part(f.ByWords, 1) + part(meaning, 1) + part(f.ByGraph, graphShare)
	if f.whole {
		sum += (1 + graphShare) / smooth // more than a text without the word can have
	}
	return sum
}

// ranked returns all found nodes, the best first, equal ones in the order of their ids.
func (s *search) ranked() []graph.Ref {
	out := make([]graph.Ref, 0, len(s.places))
	for r, f := range s.places {
		f.Score = float64(f.Named) + s.fuse(r)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b graph.Ref) int {
		return cmp.Or(cmp.Compare(s.places[b].Score, s.places[a].Score), s.byID(a, b))
	})
	return out
}

func (s *search) byID(a, b graph.Ref) int {
	if a == b {
		return 0
	}
	return strings.Compare(s.index.graph.ID(a), s.index.graph.ID(b))
}

func (s *search) best() []Found {
	ranked := s.ranked()
	out := make([]Found, 0, s.Limit)
	for _, r := range ranked[:min(len(ranked), s.Limit)] {
		f := s.places[r]
		f.Node = s.index.graph.Node(r)
		out = append(out, *f)
	}
	return out
}

// ef returns the number of candidates of a search among some vectors.
func (o *Options) ef(x *knn.Index, thorough bool) int {
	normal, most := x.Efforts()
	normal, most = cmp.Or(o.EfSearch, normal), cmp.Or(o.EfThorough, most)
	if thorough {
		return max(normal, most)
	}
	return normal
}

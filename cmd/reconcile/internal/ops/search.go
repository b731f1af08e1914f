package ops

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
)

// SearchRequest is a search. Domains and kinds are those of nodes; none means all.
type SearchRequest struct {
	Text                   string
	Domains, Kinds, Labels []string
	Limit                  int
	Mode                   string  // one of SearchModes
	Explain                bool    // add the facts about each result
	Thorough               bool    // examine more candidates
	MinSimilarity          float32 // minimum cosine similarity: 0 to 1
	// For the mode related: the weight of the similarity, the minimum score, the number of edges, and their types.
	Alpha, MinScore float64
	Depth           int
	Edges           []string
}

// NewSearch returns a SearchRequest with the default limit, mode, alpha and depth.
func NewSearch() SearchRequest {
	return SearchRequest{Limit: 10, Mode: string(vectors.Hybrid), Alpha: 0.7, Depth: 2}
}

// RelatedMode is the mode that searches by similarity first and then follows edges.
const RelatedMode = string(vectors.Related)

// SearchModes are the modes of search.
func SearchModes() []string {
	var out []string
	for _, m := range vectors.Modes {
		out = append(out, string(m))
	}
	return out
}

// SearchResult are the results of a search.
type SearchResult struct {
	Query        string       `json:"query"`
	Status       string       `json:"status"` // found, or no_matches
	Results      []answer.Hit `json:"results"`
	AlsoExistsIn []string     `json:"also_exists_in,omitempty"`
	Hint         string       `json:"hint,omitempty"` // what to try if there are no matches
}

// Search searches the index for the code, documents, decisions and work that answer the query of a SearchRequest, by
// words, meaning and relations.
func Search(ctx context.Context, env Env, q SearchRequest) (*SearchResult, *Pending, error) {
	query, err := q.query()
	if err != nil {
		return nil, nil, err
	}
	return withIndex(ctx, env, func(x *indexed) (*SearchResult, error) {
		a, err := x.kept.Search(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, w := range a.Warnings {
			x.warnSearch(w)
		}
		if x.denied != nil && query.Mode != vectors.Lexical { // a search of unknown words ends before it asks for vectors
			x.env.warnIndex(x.denied)
		}
		return x.searchResult(&q, a), nil
	})
}

// warnSearch reports missing parts of a search. It does not report vectors that are still being computed, but does
// report an endpoint that is not allowed.
func (x *indexed) warnSearch(w error) {
	missing := errors.Is(w, vectors.ErrNoVectors)
	switch {
	case missing && x.denied != nil:
		x.env.warnIndex(x.denied)
	case !missing || x.kept.Finish == nil:
		x.env.warnIndex(w)
	}
}

func (x *indexed) searchResult(q *SearchRequest, a *vectors.Answer) *SearchResult {
	out := &SearchResult{Query: q.Text, Status: "found", Results: []answer.Hit{}}
	largest := int64(x.store.Settings().Index.MaxFileSize)
	snippets := &answer.Snippets{Terms: lexical.Terms(q.Text), Read: func(p string) ([]byte, error) {
		data, _, err := x.store.ReadFile(p, largest)
		return data, err
	}}
	for i := range a.Results {
		h := x.Hit(&a.Results[i], snippets)
		if r, ok := x.Graph.Find(h.ID); ok && q.Explain {
			h.Facts = x.Facts(r)
		}
		out.Results = append(out.Results, h)
	}
	for _, d := range a.AlsoExistsIn {
		out.AlsoExistsIn = append(out.AlsoExistsIn, d.String())
	}
	if len(out.Results) == 0 {
		out.Status, out.Hint = "no_matches", q.hint(a.NoMatches, out.AlsoExistsIn)
	}
	return out
}

// query checks a request.
func (q *SearchRequest) query() (vectors.Query, error) {
	const most = 1000
	out := vectors.Query{Text: q.Text, Mode: vectors.Mode(q.Mode), Labels: q.Labels, Limit: q.Limit, Thorough: q.Thorough,
		MinSimilarity: q.MinSimilarity}
	err := checkQuery(q.Text)
	switch {
	case err != nil:
	case q.Limit < 1 || q.Limit > most:
		err = badField("k", " %d: write 1 to %d", q.Limit, most)
	case !(q.MinSimilarity >= 0 && q.MinSimilarity <= 1):
		err = badField("min-similarity", " %v: write 0 to 1", q.MinSimilarity)
	case q.MinSimilarity > 0 && out.Mode == vectors.Lexical:
		err = badField("min-similarity", " is about meaning: --mode lexical does not go by it")
	}
	if err != nil {
		return out, err
	}
	if out.Domains, err = parseNames("domain", q.Domains, graph.ParseDomain); err != nil {
		return out, err
	}
	if out.Types, err = parseNames("kind", q.Kinds, graph.ParseNodeType); err != nil {
		return out, err
	}
	if err := checkKinds(out.Types, out.Domains); err != nil {
		return out, err
	}
	for _, l := range q.Labels {
		if k, v, ok := strings.Cut(l, "="); !ok || k == "" || v == "" {
			return out, badField("label", " %q: write KEY=VALUE, as issue=42", l)
		}
	}
	if out.Mode == vectors.Related {
		out.Expansion, err = q.expansion()
	}
	return out, err
}

// checkQuery returns an error for an empty or too long text.
func checkQuery(text string) error {
	const longest = 10_000
	switch {
	case strings.TrimSpace(text) == "":
		return badRequest("the query is empty: name words to look for")
	case len(text) > longest:
		return badRequest("the query has %d bytes, at most %d are allowed: search for the words that matter", len(text), longest)
	}
	return nil
}

// expansion returns the parameters of the mode related.
func (q *SearchRequest) expansion() (x graph.Expansion, err error) {
	switch {
	case !(q.Alpha > 0 && q.Alpha <= 1):
		return x, badField("alpha", " %v: write above 0 up to 1", q.Alpha)
	case !(q.MinScore >= 0 && q.MinScore <= 1):
		return x, badField("min-score", " %v: write 0 to 1", q.MinScore)
	case q.Depth < 1 || q.Depth > 8:
		return x, badField("depth", " %d: write 1 to 8", q.Depth)
	}
	x = graph.Expansion{Alpha: q.Alpha, MinScore: q.MinScore, Depth: q.Depth}
	x.Edges, err = parseNames("edge", q.Edges, graph.ParseEdgeType)
	return x, err
}

// hint suggests another search if nothing matches. unknown means that the index has none of the words.
func (q *SearchRequest) hint(unknown bool, elsewhere []string) string {
	if unknown && len(lexical.Terms(q.Text)) == 0 {
		return noTermsHint(q.Text)
	}
	if len(elsewhere) > 0 {
		return "there is something in " + strings.Join(elsewhere, " and ") + ": search without --domain"
	}
	var narrow []string
	for _, f := range []struct {
		name string
		used bool
	}{
		{"--kind", len(q.Kinds) > 0}, {"--label", len(q.Labels) > 0}, {"--min-similarity", q.MinSimilarity > 0},
		{"--min-score", q.MinScore > 0},
	} {
		if f.used {
			narrow = append(narrow, f.name)
		}
	}
	if unknown || len(narrow) == 0 {
		return "nothing has any of these words; try others"
	}
	return "something has the words, but not with these filters: search without " + strings.Join(narrow, ", ")
}

// noTermsHint explains why a text without terms has no matches.
func noTermsHint(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return "stop words, such as a, the and what, are too common to be searched for; add words that say what it is about"
	}
	return "there are no words in this, and signs are not searched: name what it is about"
}

package answer

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/vectors"
)

// Hit is one result of a search.
type Hit struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Domain  string   `json:"domain"`
	Name    string   `json:"name"`
	Path    string   `json:"path,omitempty"`
	Line    int      `json:"line,omitempty"`
	End     int      `json:"end,omitempty"`
	Labels  []string `json:"labels,omitempty"`
	Score   float64  `json:"score"`
	Snippet []string `json:"snippet,omitempty"`
	Lines   []int    `json:"lines,omitempty"` // of the snippet's lines in the file, from 1
	Words   *Rank    `json:"words,omitempty"`
	Vector  *Rank    `json:"vector,omitempty"`
	Graph   *Rank    `json:"graph,omitempty"`
	Named   bool     `json:"named,omitempty"` // the query is its name
	Via     []Link   `json:"via,omitempty"`
	Matched []string `json:"matched,omitempty"`
	Facts   []Fact   `json:"facts,omitempty"` // where an explanation is asked for
}

// Rank is the place of a result in one of the rankings.
type Rank struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// Hit describes a node that a search found: its id, kind, score, its ranks by words, vector and graph, the links that
// it was found via, and a snippet.
func (x Index) Hit(f *vectors.Found, s *Snippets) Hit {
	h := Hit{
		ID: f.ID, Kind: f.Type.String(), Domain: f.Type.Domain().String(), Name: f.Name, Path: f.Path, Line: f.Line, End: f.End,
		Labels: f.Labels, Score: f.Score, Named: f.Named > 0, Words: rank(f.ByWords), Vector: rank(f.ByVector), Graph: rank(f.ByGraph),
	}
	for _, e := range f.Via {
		h.Via = append(h.Via, x.link(e))
	}
	h.Snippet, h.Lines, h.Matched = s.of(&f.Node)
	return h
}

func rank(p vectors.Place) *Rank {
	if p.Rank == 0 {
		return nil
	}
	return &Rank{p.Rank, p.Score}
}

// Why explains a hit: its score, and its ranks by words with BM25, by meaning with the cosine, and by relations in the
// graph.
func (h *Hit) Why() string {
	var why []string
	if h.Named {
		why = append(why, "it is called so")
	}
	if h.Words != nil {
		why = append(why, fmt.Sprintf("words: rank %d, BM25 %.2f (%s)", h.Words.Rank, h.Words.Score, strings.Join(h.Matched, " ")))
	}
	if h.Vector != nil {
		why = append(why, fmt.Sprintf("meaning: rank %d, cosine %.3f", h.Vector.Rank, h.Vector.Score))
	}
	if h.Graph != nil {
		way := ""
		for _, e := range h.Via {
			way += "; " + e.String()
			if e.Stated {
				way += " (" + e.Path + ")"
			}
		}
		why = append(why, fmt.Sprintf("relations: rank %d%s", h.Graph.Rank, way))
	}
	return fmt.Sprintf("score %.4f; %s", h.Score, strings.Join(why, "; "))
}

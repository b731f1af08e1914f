// Package answer converts results of the index into their output form: results with lines of their text, relations,
// cycles and paths with the place of each edge, and statistics of the index.
package answer

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/graph"
)

// Index is what answers are made from.
type Index struct {
	Graph *graph.Graph
	// Stated reports whether a source of an edge is a file in which people state facts.
	Stated func(source string) bool
}

// Link is an edge, with where it is stated: in a file of facts, or at the node that it is found in.
type Link struct {
	From   string  `json:"from"`
	Edge   string  `json:"edge"`
	To     string  `json:"to"`
	Weight float32 `json:"weight"`
	Path   string  `json:"path,omitempty"`
	Line   int     `json:"line,omitempty"`
	Stated bool    `json:"stated,omitempty"` // by people; else it is derived
}

func (l *Link) String() string {
	return l.From + " " + strings.ReplaceAll(l.Edge, "_", " ") + " " + l.To
}

// link describes an edge.
func (x Index) link(e graph.Edge) Link {
	l := Link{From: e.From, Edge: e.Type.String(), To: e.To, Weight: e.Weight}
	if x.Stated(e.Source) {
		l.Path, l.Stated = e.Source, true
		return l
	}
	for _, id := range []string{e.Source, e.From} {
		if r, ok := x.Graph.Find(id); ok {
			n := x.Graph.Node(r)
			l.Path, l.Line = n.Path, n.Line
			return l
		}
	}
	l.Path = e.Source
	return l
}

// Relation is a node that is related to another one.
type Relation struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Path  string `json:"path,omitempty"`
	Line  int    `json:"line,omitempty"`
	Depth int    `json:"depth"`
	Link  Link   `json:"link"`
}

// Relation describes a visited node of a walk through the graph, with its depth and its link from the node before, of
// the edges that the filter admits.
func (x Index) Relation(v graph.Visit, f graph.Filter) Relation {
	n := x.Graph.Node(v.Node)
	return Relation{ID: n.ID, Kind: n.Type.String(), Path: n.Path, Line: n.Line, Depth: v.Depth, Link: x.between(v.From, v.Node, f)}
}

// between is the first edge between two nodes that the filter admits, in its own direction.
func (x Index) between(from, to graph.Ref, f graph.Filter) Link {
	var edges []graph.Edge
	if f.Direction != graph.In {
		edges = x.Graph.Between(from, to)
	}
	if f.Direction != graph.Out {
		edges = append(edges, x.Graph.Between(to, from)...)
	}
	i := slices.IndexFunc(edges, func(e graph.Edge) bool { return len(f.Edges) == 0 || slices.Contains(f.Edges, e.Type) })
	return x.link(edges[i]) // the walk came over it
}

// Cycle is a group of nodes that all lead to each other.
type Cycle struct {
	Edge  string   `json:"edge"`
	Nodes []string `json:"nodes"`
	Round []Link   `json:"round"` // a shortest way from the first node back to it
}

// Cycle describes a group of strongly connected nodes of the graph, with their ids and the links of a round through the
// group. The edges that the filter admits are of one type.
func (x Index) Cycle(group []graph.Ref, f graph.Filter) Cycle {
	c := Cycle{Edge: f.Edges[0].String()}
	for _, r := range group {
		c.Nodes = append(c.Nodes, x.Graph.ID(r))
	}
	for _, s := range x.Graph.Round(group, f).Steps {
		c.Round = append(c.Round, x.link(x.Graph.Edge(s)))
	}
	return c
}

// Path is a way over edges.
type Path struct {
	Length int     `json:"length"`
	Weight float64 `json:"weight"`
	// Domains are those of its nodes, in their order; neighbours differ.
	Domains []string `json:"domains"`
	Nodes   []string `json:"nodes"`
	Links   []Link   `json:"links"`
}

// Path describes a way.
func (x Index) Path(p graph.Path) Path {
	w := Path{Length: len(p.Steps), Weight: math.Round(p.Weight*1e6) / 1e6, Links: []Link{}}
	for _, r := range p.Nodes {
		w.Nodes = append(w.Nodes, x.Graph.ID(r))
		if d := x.Graph.Type(r).Domain().String(); len(w.Domains) == 0 || w.Domains[len(w.Domains)-1] != d {
			w.Domains = append(w.Domains, d)
		}
	}
	for _, s := range p.Steps {
		w.Links = append(w.Links, x.link(x.Graph.Edge(s)))
	}
	return w
}

// Fact is a stated fact about a node: a provenance, a review, a change of trust or a conflict.
type Fact struct {
	ID   string `json:"id"`
	Said string `json:"said"`
	By   string `json:"by,omitempty"`
	At   string `json:"at,omitempty"` // RFC 3339
	Path string `json:"path"`
}

func (f *Fact) String() string {
	out := f.Said
	if f.By != "" {
		out += ", by " + f.By
	}
	return out + " (" + f.Path + ")"
}

// Facts lists the facts about a node: its provenances, with their confidence and verifier, and its conflicts with other
// nodes, with their resolution.
func (x Index) Facts(r graph.Ref) []Fact {
	var out []Fact
	for _, p := range x.Graph.Provenance(r) {
		said := strings.TrimSpace(p.SourceType+" "+p.SourceID) + fmt.Sprintf(" (%v)", float64(p.Confidence)/1000)
		out = append(out, Fact{ID: p.ID, Said: said, By: p.Verifier, At: timeOf(p.VerifiedAt), Path: p.Source})
	}
	id := x.Graph.ID(r)
	for _, c := range x.Graph.Conflicts(r) {
		other := c.A
		if other == id {
			other = c.B
		}
		f := Fact{ID: c.ID, Said: c.Type + " with " + other, At: timeOf(c.DetectedAt), Path: c.Source}
		if c.Resolution != "" {
			f.Said += "; resolved: " + c.Resolution
		}
		out = append(out, f)
	}
	return out
}

func timeOf(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// NearestIDs returns at most limit of ids, which are in a fixed order, that word was probably meant to be, the best first:
// those that begin with it, then those whose last part (a symbol, a file, a heading or a name) is that of the word, or else
// the fewest edits away from it. An id without a last part, as a heading of signs only, is never meant.
func NearestIDs(word string, ids iter.Seq[string], limit int) []string {
	low := strings.ToLower(strings.TrimPrefix(word, "./"))
	last := lastPart(low)
	var begun, lasts []string
	byLast := map[string][]string{}
	for id := range ids {
		own := strings.ToLower(id)
		l := lastPart(own)
		if l == "" {
			continue
		}
		if strings.HasPrefix(own, low) {
			begun = append(begun, id)
		}
		if byLast[l] == nil {
			lasts = append(lasts, l)
		}
		byLast[l] = append(byLast[l], id)
	}
	alike := byLast[last]
	if alike == nil && last != "" {
		alike = byLast[schemas.Nearest(last, lasts)]
	}
	var out []string
	for _, found := range [][]string{begun, alike} {
		slices.SortFunc(found, func(a, b string) int {
			return cmp.Or(cmp.Compare(sharedPrefix(low, strings.ToLower(b)), sharedPrefix(low, strings.ToLower(a))),
				cmp.Compare(len(a), len(b)), strings.Compare(a, b))
		})
		for _, id := range found {
			if len(out) < limit && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// lastPart is the part of an id after its last separator: Tree.Entry of state/tree.go:Tree.Entry.
func lastPart(id string) string {
	id = strings.TrimSuffix(id, "/")
	return id[strings.LastIndexAny(id, "/:#")+1:]
}

// sharedPrefix is how many bytes two words have in common at their beginnings and ends.
func sharedPrefix(a, b string) int {
	shorter := min(len(a), len(b))
	begin := 0
	for begin < shorter && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < shorter-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin + end
}

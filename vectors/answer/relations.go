// Package answer converts results of the index into their output form: results with lines of their text, relations,
// cycles and paths with the place of each edge, and statistics of the index.
package answer

import (
	"math"
	"slices"
	"strings"

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

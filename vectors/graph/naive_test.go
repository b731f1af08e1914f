package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// naive is a graph of maps and lists: what the tests hold the real one to.
type naive struct {
	nodes       map[string]graph.Node
	edges       map[edgeKey]float32
	provenances []graph.Provenance
	conflicts   []graph.Conflict
}

type edgeKey struct {
	from, to string
	kind     graph.EdgeType
	source   string
}

func newNaive(p graph.Parts) *naive {
	m := &naive{nodes: map[string]graph.Node{}, edges: map[edgeKey]float32{}}
	m.add(p)
	return m
}

// add adds parts that have no two nodes of one id.
func (m *naive) add(p graph.Parts) {
	for _, n := range p.Nodes {
		m.nodes[n.ID] = n
	}
	for _, e := range p.Edges {
		from, ok := m.nodes[e.From]
		to, there := m.nodes[e.To]
		if !ok || !there || graph.CheckEdge(e.Type, &from, &to) != nil {
			continue
		}
		if e.Weight == 0 {
			e.Weight = 1
		}
		key := edgeKey{e.From, e.To, e.Type, e.Source}
		m.edges[key] = max(m.edges[key], e.Weight)
	}
	for _, f := range p.Provenances {
		if _, ok := m.nodes[f.Node]; ok && !slices.Contains(m.provenances, f) {
			m.provenances = append(m.provenances, f)
		}
	}
	for _, c := range p.Conflicts {
		_, a := m.nodes[c.A]
		_, b := m.nodes[c.B]
		if a && b && !slices.Contains(m.conflicts, c) {
			m.conflicts = append(m.conflicts, c)
		}
	}
}

// change is what With promises, said plainly.
func (m *naive) change(c graph.Change) {
	gone, renewed := map[string]bool{}, map[string]bool{}
	for _, n := range c.Nodes {
		if old, ok := m.nodes[n.ID]; ok && old.Type.Domain() == n.Type.Domain() {
			renewed[n.ID] = true
		} else if ok {
			gone[n.ID] = true
		}
	}
	for _, id := range c.Remove {
		if !renewed[id] && !gone[id] {
			gone[id] = true
			delete(m.nodes, id)
		}
	}
	withdrawn := func(source string) bool { return source != "" && slices.Contains(c.Retract, source) }
	for key := range m.edges {
		if gone[key.from] || gone[key.to] || withdrawn(key.source) || key.source == "" && renewed[key.from] {
			delete(m.edges, key)
		}
	}
	missing := func(id string) bool {
		_, ok := m.nodes[id]
		return !ok && !slices.ContainsFunc(c.Nodes, func(n graph.Node) bool { return n.ID == id })
	}
	m.provenances = slices.DeleteFunc(m.provenances, func(p graph.Provenance) bool { return withdrawn(p.Source) || missing(p.Node) })
	m.conflicts = slices.DeleteFunc(m.conflicts, func(x graph.Conflict) bool {
		return withdrawn(x.Source) || missing(x.A) || missing(x.B)
	})
	m.add(c.Parts)
}

// parts are all of it, in no order.
func (m *naive) parts() graph.Parts {
	p := graph.Parts{Provenances: m.provenances, Conflicts: m.conflicts}
	for _, n := range m.nodes {
		p.Nodes = append(p.Nodes, n)
	}
	for k, w := range m.edges {
		p.Edges = append(p.Edges, graph.Edge{From: k.from, To: k.to, Type: k.kind, Weight: w, Source: k.source})
	}
	return p
}

func (m *naive) ids() []string {
	var out []string
	for id := range m.nodes {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}

// neighbours are the ids that edges through the filter lead to, sorted, each once.
func (m *naive) neighbours(id string, f graph.Filter) []string {
	var out []string
	for k := range m.edges {
		if len(f.Edges) > 0 && !slices.Contains(f.Edges, k.kind) {
			continue
		}
		if k.from == id && f.Direction != graph.In {
			out = append(out, k.to)
		}
		if k.to == id && f.Direction != graph.Out {
			out = append(out, k.from)
		}
	}
	sort.Strings(out)
	return slices.Compact(out)
}

func (m *naive) enters(id string, f graph.Filter) bool {
	n := m.nodes[id]
	return (len(f.Domains) == 0 || slices.Contains(f.Domains, n.Type.Domain())) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, n.Type))
}

// within are how far away the nodes are that can be reached.
func (m *naive) within(start string, depth int, f graph.Filter) map[string]int {
	out := map[string]int{start: 0}
	front := []string{start}
	for d := 1; d <= depth && len(front) > 0; d++ {
		var next []string
		for _, id := range front {
			for _, to := range m.neighbours(id, f) {
				if _, ok := out[to]; !ok && m.enters(to, f) {
					out[to] = d
					next = append(next, to)
				}
			}
		}
		front = next
	}
	return out
}

// paths are all simple paths of the route as "a>b>c", the shortest first, then by ids.
func (m *naive) paths(from string, ends func(string) bool, f graph.Filter, given func(string) bool, length int) []string {
	var found [][]string
	var walk func(path []string)
	walk = func(path []string) {
		for _, to := range m.neighbours(path[len(path)-1], f) {
			if slices.Contains(path, to) || !m.enters(to, f) && !given(to) {
				continue
			}
			longer := append(slices.Clone(path), to)
			if ends(to) {
				found = append(found, longer)
			}
			if len(longer) <= length {
				walk(longer)
			}
		}
	}
	walk([]string{from})
	slices.SortFunc(found, func(a, b []string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	var out []string
	for _, p := range found {
		out = append(out, strings.Join(p, ">"))
	}
	return out
}

var allTypes = slices.Concat(graph.Code.Types(), graph.History.Types(), graph.Academic.Types())

// randomNode is a node of an id, of a type that mostly goes with the id.
func randomNode(rng *rand.Rand, i int) graph.Node {
	t := allTypes[i*7%len(allTypes)]
	if rng.IntN(12) == 0 {
		t = allTypes[rng.IntN(len(allTypes))]
	}
	n := graph.Node{ID: fmt.Sprintf("dir%d/f%02d.go:N%d", i%3, i%7, i), Type: t, Name: fmt.Sprint("N", i),
		Digest: rng.Uint64N(6), Line: rng.IntN(90), At: int64(rng.IntN(1000))}
	n.End = n.Line + rng.IntN(9)
	if rng.IntN(3) > 0 {
		n.Path = fmt.Sprintf("dir%d/f%02d.go", i%3, i%7)
	}
	if rng.IntN(2) == 0 {
		n.Labels = []string{"kind=x", fmt.Sprint("issue=", rng.IntN(4))}
		slices.Sort(n.Labels)
	}
	return n
}

// randomParts are nodes among so many ids, each once, with about so many edges that the rules allow, and a few others.
func randomParts(rng *rand.Rand, ids, edges int) graph.Parts {
	var p graph.Parts
	for i := range ids {
		if rng.IntN(8) > 0 {
			p.Nodes = append(p.Nodes, randomNode(rng, i))
		}
	}
	byID := map[string]graph.Node{}
	for _, n := range p.Nodes {
		byID[n.ID] = n
	}
	for range edges {
		p.Edges = append(p.Edges, randomEdge(rng, ids, byID))
	}
	for range edges / 20 {
		p.Provenances = append(p.Provenances, graph.Provenance{ID: fmt.Sprint("p", rng.IntN(20)), Node: randomNode(rng, rng.IntN(ids)).ID,
			SourceType: "review", SourceID: "r1", Confidence: uint16(rng.IntN(1001)), Source: randomSource(rng)})
		p.Conflicts = append(p.Conflicts, graph.Conflict{ID: fmt.Sprint("c", rng.IntN(20)), A: randomNode(rng, rng.IntN(ids)).ID,
			B: randomNode(rng, rng.IntN(ids)).ID, Type: "duplicate", DetectedAt: 7, Source: randomSource(rng)})
	}
	return p
}

func randomSource(rng *rand.Rand) string { return fmt.Sprintf("state/s%d.yaml", rng.IntN(4)) }

// randomEdge tries a few times to find an edge that is allowed between the nodes.
func randomEdge(rng *rand.Rand, ids int, byID map[string]graph.Node) graph.Edge {
	var e graph.Edge
	for range 6 {
		e = graph.Edge{From: randomNode(rng, rng.IntN(ids)).ID, To: randomNode(rng, rng.IntN(ids)).ID,
			Type: graph.EdgeType(1 + rng.IntN(14)), Weight: float32(rng.IntN(5)) / 4}
		if from, to := byID[e.From], byID[e.To]; graph.CheckEdge(e.Type, &from, &to) == nil {
			break
		}
	}
	if rng.IntN(4) == 0 {
		e.Source = randomSource(rng)
	}
	return e
}

func randomFilter(rng *rand.Rand) graph.Filter {
	f := graph.Filter{Direction: graph.Direction(rng.IntN(3))}
	if rng.IntN(3) == 0 {
		f.Edges = []graph.EdgeType{graph.Calls, graph.References, graph.Contains, graph.Modified, graph.EdgeType(1 + rng.IntN(14))}
	}
	if rng.IntN(3) == 0 {
		f.Domains = []graph.Domain{graph.Code, graph.Domains[rng.IntN(3)]}
	}
	if rng.IntN(4) == 0 {
		f.Types = slices.Clone(allTypes[rng.IntN(10):])
	}
	return f
}

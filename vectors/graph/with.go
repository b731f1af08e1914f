package graph

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// Change is the input of With, after a few files changed.
type Change struct {
	// Remove are the ids of nodes to remove, with all edges from and to them and all facts about them. Missing ids are
	// ignored; nodes that are also in Nodes are replaced.
	Remove []string
	// Retract are the paths of files whose stated edges, provenances and conflicts are removed.
	Retract []string
	// Parts come. A node whose id is there replaces it: the edges that were derived from the old one go, those that
	// others have to it and those that a file states stay, unless it is of another domain than before.
	Parts
}

// overlay is the difference from the base. The values that it points to never change.
type overlay struct {
	gone    bitset            // places whose node went
	touched bitset            // places that are in links
	added   [][]byte          // the ids of the places after those of the base
	ids     map[string]uint32 // their places
	hashes  map[uint64]uint32
	nodes   map[uint32]*Node // those that came or were replaced
	links   map[uint32]*links
	// stated reports whether provenances and conflicts, sorted as in the base, replace those of the base.
	stated      bool
	provenances []Provenance
	conflicts   []Conflict
}

// links are the arcs of a place.
type links struct {
	out, in list
	source  []string // of out; nil if all are ""
}

// sorted are the places after those of the base whose nodes are there, by id.
func (o *overlay) sorted(g *Graph) []uint32 {
	var out []uint32
	for i := range o.added {
		if u := g.nodes + uint32(i); !o.gone.has(u) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b uint32) int { return bytes.Compare(g.idOf(a), g.idOf(b)) })
	return out
}

// clone returns a copy that can be changed independently of o, which may be nil, with room for that many more nodes.
func (o *overlay) clone(nodes int) *overlay {
	if o == nil {
		return &overlay{ids: map[string]uint32{}, hashes: map[uint64]uint32{}, nodes: make(map[uint32]*Node, nodes),
			links: make(map[uint32]*links, 2*nodes)}
	}
	out := *o
	out.gone, out.touched = slices.Clone(o.gone), slices.Clone(o.touched)
	out.added = slices.Clip(o.added)
	out.ids, out.hashes = maps.Clone(o.ids), maps.Clone(o.hashes)
	out.nodes, out.links = maps.Clone(o.nodes), maps.Clone(o.links)
	return &out
}

// edit is a change of a graph in the making.
type edit struct {
	was, now *Graph
	refused  refusals
	// cleared are the places that lose all arcs, renewed those that lose the derived ones that leave them.
	cleared, renewed map[uint32]bool
	withdrawn        map[string]bool
	comes            map[uint32][]arc // arcs that come, by where they leave
	arrivals         map[uint32]*arrivals
}

// arrivals are the arcs to a place that go and that come.
type arrivals struct{ leave, come []arc }

// With is the graph after a change. It takes as long as the change, the changes since the graph was built, and the
// edges of the nodes that are concerned: g.Changed() says how many. The answers are those of a graph that is built of the
// same parts. What cannot be is left out with an error, as by [Build].
func (g *Graph) With(c Change) (*Graph, []error) {
	now := *g
	now.over = g.over.clone(len(c.Nodes))
	e := &edit{was: g, now: &now, cleared: map[uint32]bool{}, renewed: make(map[uint32]bool, len(c.Nodes)),
		withdrawn: map[string]bool{}, comes: make(map[uint32][]arc, len(c.Nodes)), arrivals: map[uint32]*arrivals{}}
	for _, path := range c.Retract {
		e.withdrawn[path] = path != ""
	}
	e.putNodes(c.Nodes)
	e.removeNodes(c.Remove)
	e.findEdges(c.Edges)
	for u := range e.leaving() {
		e.relink(u)
	}
	for u, a := range e.arrivals {
		e.receive(u, a)
	}
	e.state(c.Provenances, c.Conflicts)
	return e.now, e.refused.list()
}

// putNodes adds and replaces nodes.
func (e *edit) putNodes(nodes []Node) {
	b := graphBuilder{}
	b.takeNodes(nodes)
	e.refused = b.refused
	o := e.now.over
	for _, n := range b.nodes {
		u, known := e.now.place(n.ID)
		switch {
		case !known:
			u = e.now.nodePlaces()
			o.added = append(o.added, []byte(n.ID))
			o.ids[n.ID], o.hashes[HashID(n.ID)] = u, u
			e.now.nodeCount++
		case !e.now.has(Ref(u)):
			o.gone.remove(u)
			e.now.nodeCount++
		case e.was.typeOf(u).Domain() != n.Type.Domain():
			e.cleared[u] = true
		default:
			e.renewed[u] = true
		}
		put := *n
		put.Labels = slices.Clone(sortedSet(n.Labels))
		e.touch(u)
		o.nodes[u] = &put
	}
}

// removeNodes takes nodes away that were there before and do not come again.
func (e *edit) removeNodes(ids []string) {
	for _, id := range ids {
		u, ok := e.was.Find(id)
		if !ok || e.cleared[uint32(u)] || e.renewed[uint32(u)] {
			continue
		}
		e.cleared[uint32(u)] = true
		e.touch(uint32(u))
		e.now.over.gone.add(uint32(u))
		e.now.nodeCount--
	}
}

// findEdges makes arcs of the edges that come.
func (e *edit) findEdges(edges []Edge) {
	find := func(id string) (uint32, bool) {
		u, ok := e.now.Find(id)
		return uint32(u), ok
	}
	for i := range edges {
		a, err := toArc(&edges[i], find, e.now.typeOf)
		if err != nil {
			e.refused.add(err)
			continue
		}
		e.comes[a.from] = append(e.comes[a.from], a)
	}
}

// leaving are the places whose leaving arcs may change.
func (e *edit) leaving() map[uint32]bool {
	out := make(map[uint32]bool, len(e.renewed)+len(e.comes))
	for u := range e.renewed {
		out[u] = true
	}
	for u := range e.comes {
		out[u] = true
	}
	for u := range e.cleared {
		out[u] = true
		for _, from := range e.was.inOf(u).to {
			out[from] = true
		}
	}
	if len(e.withdrawn) == 0 {
		return out
	}
	for row := range int(e.was.sourceCount) {
		if arc, source := e.was.source(row); e.withdrawn[source] {
			out[e.was.out.owner(arc)] = true
		}
	}
	for u, l := range e.was.linked() {
		if slices.ContainsFunc(l.source, func(s string) bool { return e.withdrawn[s] }) {
			out[u] = true
		}
	}
	return out
}

// linked are the links that differ from those of the base.
func (g *Graph) linked() map[uint32]*links {
	if g.over == nil {
		return nil
	}
	return g.over.links
}

// touch gives a place links of its own, and returns a copy of them that may be changed.
func (e *edit) touch(u uint32) *links {
	o := e.now.over
	l := &links{}
	if old := o.links[u]; old != nil {
		*l = *old
	} else if u < e.now.nodes {
		l.source = e.now.sourcesOf(u)
		l.out, l.in = e.now.out.of(u), e.now.in.of(u)
	}
	o.links[u] = l
	o.touched.add(u)
	return l
}

// relink changes the arcs that leave a place, and notes where they led and lead.
func (e *edit) relink(u uint32) {
	var was []arc
	if u < e.was.nodePlaces() {
		was = e.was.arcs(Ref(u))
	}
	now := make([]arc, 0, len(was)+len(e.comes[u]))
	for _, a := range was {
		if !e.cleared[u] && !e.cleared[a.to] && !(e.renewed[u] && a.source == "") && !e.withdrawn[a.source] {
			now = append(now, a)
		}
	}
	now = append(now, e.comes[u]...)
	slices.SortFunc(now, e.now.compareArcs)
	now = slices.CompactFunc(now, sameEdge)
	e.note(was, now)
	l := e.touch(u)
	l.out, l.source = newList(len(now)), nil
	for i, a := range now {
		l.out.to[i], l.out.weight[i], l.out.kind[i] = a.to, a.weight, a.kind
		if a.source == "" {
			continue
		}
		if l.source == nil {
			l.source = make([]string, len(now))
		}
		l.source[i] = a.source
	}
	e.now.edgeCount += len(now) - len(was)
}

// note compares the arcs of a place before and after, both sorted.
func (e *edit) note(was, now []arc) {
	for len(was) > 0 || len(now) > 0 {
		switch c := e.first(was, now); {
		case c == 0:
			was, now = was[1:], now[1:]
		case c < 0:
			a := e.arrivalsAt(was[0].to)
			a.leave = append(a.leave, was[0])
			was = was[1:]
		default:
			a := e.arrivalsAt(now[0].to)
			a.come = append(a.come, now[0])
			now = now[1:]
		}
	}
}

// first is negative if the first arc of was comes before that of now, or is the only one; 0 if they are the same.
func (e *edit) first(was, now []arc) int {
	switch {
	case len(now) == 0:
		return -1
	case len(was) == 0:
		return 1
	}
	return e.now.compareArcs(was[0], now[0])
}

func (e *edit) arrivalsAt(u uint32) *arrivals {
	if e.arrivals[u] == nil {
		e.arrivals[u] = &arrivals{}
	}
	return e.arrivals[u]
}

// receive changes the arcs that lead to a place.
func (e *edit) receive(u uint32, a *arrivals) {
	l := e.touch(u)
	going := make(map[arc]int, len(a.leave))
	for _, x := range a.leave {
		x.source = ""
		going[x]++
	}
	in := make([]arc, 0, len(l.in.to)+len(a.come))
	for i, from := range l.in.to {
		x := arc{from: from, to: u, weight: l.in.weight[i], kind: l.in.kind[i]}
		if going[x] > 0 {
			going[x]--
			continue
		}
		in = append(in, x)
	}
	in = append(in, a.come...)
	slices.SortFunc(in, func(a, b arc) int { return cmp.Or(cmp.Compare(a.kind, b.kind), e.now.byID(a.from, b.from)) })
	l.in = newList(len(in))
	for i, x := range in {
		l.in.to[i], l.in.weight[i], l.in.kind[i] = x.from, x.weight, x.kind
	}
}

// state changes the provenances and conflicts.
func (e *edit) state(provenances []Provenance, conflicts []Conflict) {
	come := len(provenances)+len(conflicts) > 0
	old := e.was.over != nil && e.was.over.stated || e.was.provenanceCount+e.was.conflictCount > 0
	if !come && (!old || len(e.withdrawn)+len(e.cleared) == 0) {
		return
	}
	find := func(id string) (uint32, bool) {
		u, ok := e.now.Find(id)
		return uint32(u), ok
	}
	there := func(id string) bool { _, ok := find(id); return ok }
	o := e.now.over
	kept := slices.DeleteFunc(e.was.allProvenances(), func(p Provenance) bool {
		return e.withdrawn[p.Source] || !there(p.Node)
	})
	o.provenances = takeProvenances(append(kept, provenances...), find, &e.refused)
	left := slices.DeleteFunc(e.was.allConflicts(), func(c Conflict) bool {
		return e.withdrawn[c.Source] || !there(c.A) || !there(c.B)
	})
	o.conflicts = takeConflicts(append(left, conflicts...), find, &e.refused)
	o.stated = true
}

// changed returns the node at the place if it differs from the base.
func (g *Graph) changed(u uint32) *Node {
	if g.over == nil || !g.over.touched.has(u) {
		return nil
	}
	return g.over.nodes[u]
}

// Changed returns the number of nodes of the graph that have changed, or have other links, since it was built. Look-ups
// of these are slower and each [Graph.With] copies them: when they are many, Open(g.AppendTo(nil)) returns an equal
// graph without them.
func (g *Graph) Changed() int {
	if g.over == nil {
		return 0
	}
	return len(g.over.links)
}

// parts returns the parts of the graph, in the order of ids: Build(g.parts()) answers as g does.
func (g *Graph) parts() Parts {
	p := Parts{
		Nodes: make([]Node, 0, g.nodeCount), Edges: make([]Edge, 0, g.edgeCount),
		Provenances: g.allProvenances(), Conflicts: g.allConflicts(),
	}
	for r := range g.All() {
		p.Nodes = append(p.Nodes, g.Node(r))
		for _, a := range g.arcs(r) {
			p.Edges = append(p.Edges, g.edge(a))
		}
	}
	return p
}

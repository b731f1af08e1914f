package vectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
)

// ErrRebuild reports that changes cannot be applied to an index input by input: it must be rebuilt. They concern a
// name that several inputs have, or move the end of an edge of an unchanged input from one node to another.
var ErrRebuild = errors.New("what changed touches what other inputs say: the index is to be built anew")

// merging joins a snapshot and a delta, with the result that [Build] would have for the inputs.
type merging struct {
	stored  *Stored
	names   []string            // of the changed inputs, sorted
	changed []bool              // by the numbers of the snapshot's inputs
	added   map[string]addition // items that came or were replaced
	removed map[string]bool     // ids of the snapshot that went
	aliases map[string][]string // of news, each sorted
	edges   []graph.Edge
	items   []*graph.Item // the news, sorted by id
	fresh   []*graph.Item // those of them with other texts than the snapshot's
	warn    func(error)
}

// addition is an item and its input.
type addition struct {
	*graph.Item
	of *changed
}

// merge compares the delta with the snapshot.
func (s *Stored) merge(warn func(error)) (*merging, error) {
	if err := s.contributions.read(s.base, s.baseGraph.Nodes()); err != nil {
		return nil, err
	}
	m := &merging{
		stored: s, names: slices.Sorted(maps.Keys(s.delta.inputs)), changed: make([]bool, len(s.contributions.names)), warn: warn,
		added: map[string]addition{}, removed: map[string]bool{}, aliases: map[string][]string{},
	}
	for _, name := range m.names {
		if n, ok := s.contributions.findInput(name); ok {
			m.changed[n] = true
		}
	}
	for _, name := range m.names {
		c := s.delta.inputs[name]
		for i := range c.Items {
			if err := m.addItem(name, c, &c.Items[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range m.names {
		if n, ok := s.contributions.findInput(name); ok {
			if err := m.removeNodes(n); err != nil {
				return nil, err
			}
		}
	}
	for id, it := range m.added {
		if alias := aliasOf(&it.Node); alias != "" {
			m.aliases[alias] = append(m.aliases[alias], id)
		}
	}
	for _, ids := range m.aliases {
		slices.Sort(ids)
	}
	m.items = make([]*graph.Item, 0, len(m.added))
	for _, it := range m.added {
		m.items = append(m.items, it.Item)
	}
	slices.SortFunc(m.items, func(a, b *graph.Item) int { return strings.Compare(a.ID, b.ID) })
	m.fresh = slices.DeleteFunc(slices.Clone(m.items), m.stored.hasSame)
	return m, m.relate()
}

// addItem adds an item of a changed input, unless another input contains it.
func (m *merging) addItem(name string, c *changed, it *graph.Item) error {
	if _, taken := m.added[it.ID]; taken {
		return nil // of an input whose name comes before
	}
	r, ok := m.stored.baseGraph.Find(it.ID)
	if !ok {
		m.added[it.ID] = addition{it, c}
		return nil
	}
	if m.stored.baseGraph.Type(r).Domain() != it.Type.Domain() {
		return ErrRebuild // the rules may allow other relations between other inputs and this node now
	}
	holder, stays := m.unchanged(r)
	switch {
	case !stays:
		m.added[it.ID] = addition{it, c}
	case it.Type == graph.Import:
		// The same, whichever input has it.
	case holder != m.stored.contributions.owner(r) || name < m.stored.contributions.names[holder]:
		return ErrRebuild
	}
	return nil
}

// removeNodes records the nodes of an input of the snapshot that no input has any more.
func (m *merging) removeNodes(n int) error {
	for _, place := range m.stored.contributions.nodesOf(n) {
		r := graph.Ref(place)
		id := m.stored.baseGraph.ID(r)
		holder, stays := m.unchanged(r)
		switch {
		case stays && (holder == m.stored.contributions.owner(r) || m.stored.baseGraph.Type(r) == graph.Import):
		case m.added[id].Item != nil:
		case !stays:
			m.removed[id] = true
		default:
			return ErrRebuild // what the other has of it is not in the snapshot
		}
	}
	return nil
}

// unchanged returns the first unchanged input that has a node of the snapshot; ok is false without one.
func (m *merging) unchanged(r graph.Ref) (input int, ok bool) {
	m.stored.contributions.holders(r, func(n int) bool {
		input, ok = n, !m.changed[n]
		return !ok
	})
	return input, ok
}

// relate resolves the edges of the changed inputs, and those of other inputs that have another end now.
func (m *merging) relate() error {
	for _, name := range m.names {
		c := m.stored.delta.inputs[name]
		in := &Input{Name: name}
		for _, e := range c.Edges {
			from, to := m.resolve(e.From), m.resolve(e.To)
			if from == "" || to == "" {
				in.warnMissing(&e, from, m.warn)
				continue
			}
			m.edges = append(m.edges, in.edge(e, from, to, m.added[from].of == c))
		}
	}
	return m.reconnect()
}

// reconnect resolves again the unresolved edges of the snapshot that name an added or removed node.
func (m *merging) reconnect() error {
	named := hashTable(m.stored.base.Get(sectionUnresolvedNames))
	seen := map[uint32]bool{}
	for _, name := range m.movedNames() {
		for _, at := range named.of(name) {
			if seen[at] {
				continue
			}
			seen[at] = true
			e, err := m.stored.unresolvedAt(at)
			if err != nil {
				return err
			}
			if err := m.updateEdge(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// movedNames returns the names that may mean another node than in the snapshot, or none.
func (m *merging) movedNames() []string {
	var out []string
	take := func(n *graph.Node) {
		out = append(out, n.ID)
		if alias := aliasOf(n); alias != "" {
			out = append(out, alias)
		}
	}
	for id, it := range m.added {
		if _, ok := m.stored.baseGraph.Find(id); !ok {
			take(&it.Node)
		}
	}
	for id := range m.removed {
		if r, ok := m.stored.baseGraph.Find(id); ok {
			take(&graph.Node{ID: id, Type: m.stored.baseGraph.Type(r)})
		}
	}
	return out
}

// updateEdge resolves an edge of an unchanged input again, and adds it if it has an end that it lacked before.
func (m *merging) updateEdge(e *unresolvedEdge) error {
	if m.changed[e.input] {
		return nil
	}
	wasFrom, wasTo := m.stored.baseResolve(e.From), m.stored.baseResolve(e.To)
	from, to := m.resolve(e.From), m.resolve(e.To)
	if from == wasFrom && to == wasTo {
		return nil
	}
	if wasFrom != "" && wasTo != "" && !m.removed[wasFrom] && !m.removed[wasTo] {
		return ErrRebuild // the edge to where it led before is in the snapshot
	}
	if from == "" || to == "" {
		return nil
	}
	r, ok := m.stored.baseGraph.Find(from)
	own := ok && m.stored.contributions.owner(r) == e.input
	m.edges = append(m.edges, (&Input{Name: m.stored.contributions.names[e.input]}).edge(e.Edge, from, to, own))
	return nil
}

// resolve returns the id of the node that an end of an edge means now; "" if it does not exist.
func (m *merging) resolve(id string) string {
	if _, came := m.added[id]; came {
		return id
	}
	if _, ok := m.stored.baseGraph.Find(id); ok && !m.removed[id] {
		return id
	}
	best := ""
	if ids := m.aliases[id]; len(ids) > 0 {
		best = ids[0]
	}
	for _, other := range m.stored.baseAliases(id) {
		if !m.removed[other] && (best == "" || other < best) {
			return other
		}
	}
	return best
}

// baseAliases are the ids of the symbols that the snapshot knows under an alias, sorted.
func (s *Stored) baseAliases(alias string) []string {
	if !strings.Contains(alias, "/:") {
		return nil
	}
	var out []string
	for _, n := range hashTable(s.base.Get(sectionAliases)).of(alias) {
		if int(n) < s.baseGraph.Nodes() {
			out = append(out, s.baseGraph.ID(graph.Ref(n)))
		}
	}
	return out
}

// graph joins the graphs of the snapshot and the delta.
func (m *merging) graph() (*graph.Graph, error) {
	change := graph.Change{Remove: slices.Sorted(maps.Keys(m.removed))}
	change.Edges = m.edges
	for _, it := range m.items {
		change.Nodes = append(change.Nodes, it.Node)
	}
	for n, changed := range m.changed {
		if changed && m.stored.contributions.states[n] {
			change.Retract = append(change.Retract, (&Input{Name: m.stored.contributions.names[n]}).source())
		}
	}
	kept, err := decodeFacts(m.stored.base.Get(sectionFacts), len(m.stored.contributions.names))
	if err != nil {
		return nil, err
	}
	for _, f := range kept {
		if !m.changed[f.input] {
			m.addFacts(&change, &f, func(error) {})
		}
	}
	for _, name := range m.names {
		m.addFacts(&change, &m.stored.delta.inputs[name].facts, m.warn)
	}
	g, refused := m.stored.baseGraph.With(change)
	for _, err := range refused {
		m.warn(err)
	}
	return g, nil
}

// addFacts adds the facts whose nodes exist, and warns of the others.
func (m *merging) addFacts(c *graph.Change, f *facts, warn func(error)) {
	there := func(source, what string, ids ...string) bool {
		for _, id := range ids {
			if _, ok := m.stored.baseGraph.Find(id); m.added[id].Item == nil && (!ok || m.removed[id]) {
				warn(fmt.Errorf("%s: %s: there is no node %q (yet)", source, what, id))
				return false
			}
		}
		return true
	}
	for _, p := range f.provenances {
		if there(p.Source, "provenance "+strconv.Quote(p.ID), p.Node) {
			c.Provenances = append(c.Provenances, p)
		}
	}
	for _, k := range f.conflicts {
		if there(k.Source, "conflict "+strconv.Quote(k.ID), k.A, k.B) {
			c.Conflicts = append(c.Conflicts, k)
		}
	}
}

// replacedTexts returns the texts of the snapshot that were removed or replaced.
func (m *merging) replacedTexts() map[graph.Ref]bool {
	out := map[graph.Ref]bool{}
	take := func(id string) {
		if r, ok := m.stored.baseGraph.Find(id); ok {
			out[r] = true
		}
	}
	for id := range m.removed {
		take(id)
	}
	for _, it := range m.fresh {
		take(it.ID)
	}
	return out
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
	base := lexical.Segment{Index: x.Stored.baseWords}
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
	x.known = x.Stored.topics.With(known)
	x.live = x.slotsExcept(passed)
	x.lacks = x.lacking(m.fresh)
	return x, nil
}

const hashedRow = 12

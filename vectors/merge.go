package vectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// ErrRebuild says that changes cannot be taken into an index one by one: it has to be built anew. They concern a name
// that several inputs have, or move the end of an edge of an input that did not change from one node to another.
var ErrRebuild = errors.New("what changed touches what other inputs say: the index is to be built anew")

// merging finds out what a snapshot and a delta come to together, so that it is what [Build] would make of the inputs.
type merging struct {
	*Stored
	names   []string            // of the changed inputs, sorted
	changed []bool              // by the numbers of the snapshot's inputs
	news    map[string]arrival  // items that came or were replaced
	gone    map[string]bool     // ids of the snapshot that went
	aliases map[string][]string // of news, each sorted
	edges   []graph.Edge
	items   []*graph.Item // the news, sorted by id
	fresh   []*graph.Item // those of them with other texts than the snapshot's
	warn    func(error)
}

// arrival is an item and the input that it is taken from.
type arrival struct {
	*graph.Item
	of *changed
}

// merge compares the delta with the snapshot.
func (s *Stored) merge(warn func(error)) (*merging, error) {
	if err := s.held.read(); err != nil {
		return nil, err
	}
	m := &merging{
		Stored: s, names: slices.Sorted(maps.Keys(s.delta.inputs)), changed: make([]bool, len(s.held.names)), warn: warn,
		news: map[string]arrival{}, gone: map[string]bool{}, aliases: map[string][]string{},
	}
	for _, name := range m.names {
		if n, ok := s.held.find(name); ok {
			m.changed[n] = true
		}
	}
	for _, name := range m.names {
		c := s.delta.inputs[name]
		for i := range c.Items {
			if err := m.come(name, c, &c.Items[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range m.names {
		if n, ok := s.held.find(name); ok {
			if err := m.leave(n); err != nil {
				return nil, err
			}
		}
	}
	for id, it := range m.news {
		if alias := aliasOf(&it.Node); alias != "" {
			m.aliases[alias] = append(m.aliases[alias], id)
		}
	}
	for _, ids := range m.aliases {
		slices.Sort(ids)
	}
	m.items = make([]*graph.Item, 0, len(m.news))
	for _, it := range m.news {
		m.items = append(m.items, it.Item)
	}
	slices.SortFunc(m.items, func(a, b *graph.Item) int { return strings.Compare(a.ID, b.ID) })
	m.fresh = slices.DeleteFunc(slices.Clone(m.items), m.hasSame)
	return m, m.relate()
}

// come takes an item of a changed input, unless another input has it.
func (m *merging) come(name string, c *changed, it *graph.Item) error {
	if _, taken := m.news[it.ID]; taken {
		return nil // of an input whose name comes before
	}
	r, ok := m.baseGraph.Find(it.ID)
	if !ok {
		m.news[it.ID] = arrival{it, c}
		return nil
	}
	if m.baseGraph.Type(r).Domain() != it.Type.Domain() {
		return ErrRebuild // what the rules allow between others and this is no longer the same
	}
	holder, stays := m.unchanged(r)
	switch {
	case !stays:
		m.news[it.ID] = arrival{it, c}
	case it.Type == graph.Import:
		// The same, whoever has it.
	case holder != m.held.owner(r) || name < m.held.names[holder]:
		return ErrRebuild
	}
	return nil
}

// leave notes what of an input of the snapshot nobody has any more.
func (m *merging) leave(n int) error {
	for _, r := range m.held.of(n) {
		id := m.baseGraph.ID(r)
		holder, stays := m.unchanged(r)
		switch {
		case stays && (holder == m.held.owner(r) || m.baseGraph.Type(r) == graph.Import):
		case m.news[id].Item != nil:
		case !stays:
			m.gone[id] = true
		default:
			return ErrRebuild // what the other has of it is not in the snapshot
		}
	}
	return nil
}

// unchanged is the first of the inputs with a node of the snapshot that are as they were; ok is false if there is none.
func (m *merging) unchanged(r graph.Ref) (input int, ok bool) {
	m.held.holders(r, func(n int) bool {
		input, ok = n, !m.changed[n]
		return !ok
	})
	return input, ok
}

// relate finds the edges: of the changed inputs, and those of others that lead somewhere else now.
func (m *merging) relate() error {
	for _, name := range m.names {
		c := m.delta.inputs[name]
		in := &Input{Name: name}
		for _, e := range c.Edges {
			from, to := m.find(e.From), m.find(e.To)
			if from == "" || to == "" {
				in.warnMissing(&e, from, m.warn)
				continue
			}
			m.edges = append(m.edges, in.edge(e, from, to, m.news[from].of == c))
		}
	}
	return m.reconnect()
}

// reconnect goes through the loose edges of the snapshot that name what came or went.
func (m *merging) reconnect() error {
	named := hashed(m.base.get(sectionLooseNames))
	seen := map[uint32]bool{}
	for _, name := range m.moved() {
		for _, at := range named.of(name) {
			if seen[at] {
				continue
			}
			seen[at] = true
			e, err := m.looseAt(at)
			if err != nil {
				return err
			}
			if err := m.lead(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// moved are the names that may stand for another node than in the snapshot, or for none.
func (m *merging) moved() []string {
	var out []string
	take := func(n *graph.Node) {
		out = append(out, n.ID)
		if alias := aliasOf(n); alias != "" {
			out = append(out, alias)
		}
	}
	for id, it := range m.news {
		if _, ok := m.baseGraph.Find(id); !ok {
			take(&it.Node)
		}
	}
	for id := range m.gone {
		if r, ok := m.baseGraph.Find(id); ok {
			take(&graph.Node{ID: id, Type: m.baseGraph.Type(r)})
		}
	}
	return out
}

// lead has an edge of an input that did not change lead where it leads now.
func (m *merging) lead(e *looseEdge) error {
	if m.changed[e.input] {
		return nil
	}
	wasFrom, wasTo := m.baseFind(e.From), m.baseFind(e.To)
	from, to := m.find(e.From), m.find(e.To)
	if from == wasFrom && to == wasTo {
		return nil
	}
	if wasFrom != "" && wasTo != "" && !m.gone[wasFrom] && !m.gone[wasTo] {
		return ErrRebuild // the edge to where it led before is in the snapshot
	}
	if from == "" || to == "" {
		return nil
	}
	r, ok := m.baseGraph.Find(from)
	own := ok && m.held.owner(r) == e.input
	m.edges = append(m.edges, (&Input{Name: m.held.names[e.input]}).edge(e.Edge, from, to, own))
	return nil
}

// find is the id of the node that an end of an edge means now; "" if there is none.
func (m *merging) find(id string) string {
	if _, came := m.news[id]; came {
		return id
	}
	if _, ok := m.baseGraph.Find(id); ok && !m.gone[id] {
		return id
	}
	best := ""
	if ids := m.aliases[id]; len(ids) > 0 {
		best = ids[0]
	}
	for _, other := range m.baseAliases(id) {
		if !m.gone[other] && (best == "" || other < best) {
			return other
		}
	}
	return best
}

// baseFind is what an end of an edge means in the snapshot.
func (s *Stored) baseFind(id string) string {
	if _, ok := s.baseGraph.Find(id); ok {
		return id
	}
	if ids := s.baseAliases(id); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// baseAliases are the ids of the symbols that the snapshot knows under an alias, sorted.
func (s *Stored) baseAliases(alias string) []string {
	if !strings.Contains(alias, "/:") {
		return nil
	}
	var out []string
	for _, n := range hashed(s.base.get(sectionAliases)).of(alias) {
		if int(n) < s.baseGraph.Nodes() {
			out = append(out, s.baseGraph.ID(graph.Ref(n)))
		}
	}
	return out
}

// graph makes one graph of the snapshot's and the delta.
func (m *merging) graph() (*graph.Graph, error) {
	change := graph.Change{Remove: slices.Sorted(maps.Keys(m.gone))}
	change.Edges = m.edges
	for _, it := range m.items {
		change.Nodes = append(change.Nodes, it.Node)
	}
	for n, changed := range m.changed {
		if changed && m.held.states[n] {
			change.Withdraw = append(change.Withdraw, (&Input{Name: m.held.names[n]}).source())
		}
	}
	kept, err := decodeFacts(m.base.get(sectionFacts), len(m.held.names))
	if err != nil {
		return nil, err
	}
	for _, f := range kept {
		if !m.changed[f.input] {
			m.state(&change, &f, func(error) {})
		}
	}
	for _, name := range m.names {
		m.state(&change, &m.delta.inputs[name].facts, m.warn)
	}
	g, refused := m.baseGraph.With(change)
	for _, err := range refused {
		m.warn(err)
	}
	return g, nil
}

// state adds facts of nodes that are there, and tells of others.
func (m *merging) state(c *graph.Change, f *facts, warn func(error)) {
	there := func(source, what string, ids ...string) bool {
		for _, id := range ids {
			if _, ok := m.baseGraph.Find(id); m.news[id].Item == nil && (!ok || m.gone[id]) {
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

// hasSame reports whether the snapshot has an item under the same words.
func (s *Stored) hasSame(it *graph.Item) bool {
	r, ok := s.baseGraph.Find(it.ID)
	if !ok {
		return false
	}
	name, digest := s.baseGraph.Called(r)
	return digest == it.Digest && name == it.Name && s.baseGraph.Type(r) == it.Type
}

// passedOver are the texts of the snapshot that went or were replaced.
func (m *merging) passedOver() map[graph.Ref]bool {
	out := map[graph.Ref]bool{}
	take := func(id string) {
		if r, ok := m.baseGraph.Find(id); ok {
			out[r] = true
		}
	}
	for id := range m.gone {
		take(id)
	}
	for _, it := range m.fresh {
		take(it.ID)
	}
	return out
}

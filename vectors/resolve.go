package vectors

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/source"
)

// Resolve resolves a word to a node of the graph: by the node's id, by the alias of a symbol ("state/:Tree.Entry"), or
// by a folder without its slash.
func (x *Index) Resolve(word string) (graph.Ref, bool) {
	word = strings.TrimPrefix(word, "./")
	for _, id := range []string{word, word + "/"} {
		if r, ok := x.graph.Find(id); ok {
			return r, true
		}
	}
	if !source.IsAlias(word) {
		return 0, false
	}
	ids := x.Stored.baseAliases(word)
	for _, r := range x.docs {
		if n := x.graph.Node(r); aliasOf(&n) == word {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if r, ok := x.graph.Find(id); ok {
			return r, true
		}
	}
	return 0, false
}

// AtLine returns the node of the graph whose lines include the line of a place as compilers and search print it
// ("state/tree.go:120"): of several the one with the fewest lines, of equal ones the one with the first id.
func (x *Index) AtLine(place string) (graph.Ref, bool) {
	place = strings.TrimPrefix(place, "./")
	colon := max(0, strings.LastIndexByte(place, ':'))
	line, err := strconv.Atoi(strings.TrimPrefix(place[colon:], ":"))
	if err != nil || line < 1 {
		return 0, false
	}
	var best graph.Ref
	least := 0 // lines of the best; 0: none found yet
	for _, r := range x.graph.ByPath(place[:colon]) {
		n := x.graph.Node(r)
		lines := n.End - n.Line + 1
		if n.End == 0 { // an object, which its file is all about
			lines = math.MaxInt
		}
		if n.Line <= line && line-n.Line < lines && (least == 0 || lines < least) {
			best, least = r, lines
		}
	}
	return best, least > 0
}

// aliasOf returns the name by which a query finds a symbol of code, without its file; "" for other nodes.
func aliasOf(n *graph.Node) string {
	if n.Type.Domain() != graph.Code {
		return ""
	}
	alias, _ := source.Alias(n.ID)
	return alias
}

// encodeAliases writes the nodes of each alias.
func encodeAliases(g *graph.Graph, a *assembly) []byte {
	var pairs []hashedPair
	for alias, ids := range a.alias {
		for _, id := range ids {
			if r, ok := g.Find(id); ok {
				pairs = append(pairs, hashedPair{graph.HashID(alias), uint32(r)})
			}
		}
	}
	return encodeHashed(pairs)
}

func encodeHashed(pairs []hashedPair) []byte {
	slices.SortFunc(pairs, func(a, b hashedPair) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.number, b.number))
	})
	out := make([]byte, 0, hashedRow*len(pairs))
	for _, p := range pairs {
		out = binary.LittleEndian.AppendUint64(out, p.hash)
		out = binary.LittleEndian.AppendUint32(out, p.number)
	}
	return out
}

type hashedPair struct {
	hash   uint64
	number uint32
}

// Named is how exactly a text is the name of a result; larger is better. 0 means that it is not its name.
type Named uint8

// Degrees of Named.
const (
	sameWords Named = iota + 1 // joined otherwise, with or without its type: open file or open_file for Store.openFile
	likePart                   // in other letter case, without its type: entry for Tree.Entry
	likeName                   // in other letter case: tree.entry
	partExact                  // without its type: Entry
	nameExact                  // Tree.Entry
)

// name returns the query as a name; a call names a function.
func (s *search) name() string { return strings.TrimSuffix(strings.TrimSpace(s.Text), "()") }

// named returns how exactly a name is that of a node.
func named(n *graph.Node, name string) Named {
	for i, own := range namesOf(n) {
		exact, like := nameExact, likeName
		if i > 0 {
			exact, like = partExact, likePart
		}
		if own == name {
			return exact
		}
		if strings.EqualFold(own, name) {
			return like
		}
	}
	if slices.ContainsFunc(namesOf(n), func(own string) bool { return lexical.NameTerm(own) == lexical.NameTerm(name) }) {
		return sameWords
	}
	return 0
}

// namesOf returns the name of a node, and for a method the name without its type: Entry of Tree.Entry.
func namesOf(n *graph.Node) []string {
	if n.Name == "" {
		return nil
	}
	if at := strings.LastIndexAny(n.Name, ".:"); n.Type.IsSymbol() && at >= 0 && at+1 < len(n.Name) {
		return []string{n.Name, n.Name[at+1:]}
	}
	return []string{n.Name}
}

// byName finds the nodes with the query as their name.
func (s *search) byName() error {
	name := s.name()
	docs, err := s.index.words.Named(name)
	if err != nil {
		return damaged(err)
	}
	for _, doc := range docs {
		r := s.index.doc(doc)
		if !s.accepts(r) {
			continue
		}
		n := s.index.graph.Node(r)
		if is := named(&n, name); is > 0 {
			s.place(r).Named = is
		}
	}
	return nil
}

// hashTable is a sorted table of hashes of names, each with a number: 12 bytes a row, little-endian.
type hashTable []byte

// of are the numbers of a name, ascending.
func (t hashTable) of(name string) []uint32 {
	hash := graph.HashID(name)
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(t[hashedRow*i:]) }
	n := len(t) / hashedRow
	var out []uint32
	for i := sort.Search(n, func(i int) bool { return at(i) >= hash }); i < n && at(i) == hash; i++ {
		out = append(out, binary.LittleEndian.Uint32(t[hashedRow*i+8:]))
	}
	return out
}

// encodeUnresolved encodes the unresolved edges, and for each name the places of those that contain it.
func encodeUnresolved(a *assembly) (edges, names []byte) {
	w := &contributionWriter{}
	var pairs []hashedPair
	for i := range a.unresolved {
		e := &a.unresolved[i]
		for _, end := range []string{e.From, e.To} {
			if _, direct := a.owner[end]; !direct {
				pairs = append(pairs, hashedPair{graph.HashID(end), uint32(len(w.B))})
			}
		}
		w.Uint(uint64(e.input))
		w.edge(&e.Edge)
	}
	return w.B, encodeHashed(slices.Compact(pairs))
}

// unresolvedAt decodes the unresolved edge at an offset.
func (s *Stored) unresolvedAt(at uint32) (unresolvedEdge, error) {
	data := s.base.Get(sectionUnresolved)
	if int(at) >= len(data) {
		return unresolvedEdge{}, ErrDamaged
	}
	r := newReader(data[at:])
	e := unresolvedEdge{input: r.small(), Edge: r.edge()}
	if r.Bad || e.input >= len(s.contributions.names) {
		return unresolvedEdge{}, ErrDamaged
	}
	return e, nil
}

// baseResolve returns the id of the node that an end of an edge means in the snapshot.
func (s *Stored) baseResolve(id string) string {
	if _, ok := s.baseGraph.Find(id); ok {
		return id
	}
	if ids := s.baseAliases(id); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

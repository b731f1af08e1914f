package vectors

import (
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// Named is how exactly a text is the name of a result; larger is better. 0 means that it is not its name.
type Named uint8

// Degrees of Named.
const (
	LikePart  Named = iota + 1 // in other letter case, without its type: entry for Tree.Entry
	LikeName                   // in other letter case: tree.entry
	PartExact                  // without its type: Entry
	NameExact                  // Tree.Entry
)

// name returns the query as a name; a call names a function.
func (s *search) name() string { return strings.TrimSuffix(strings.TrimSpace(s.Text), "()") }

// named returns how exactly a name is that of a node.
func named(n *graph.Node, name string) Named {
	for i, own := range namesOf(n) {
		exact, like := NameExact, LikeName
		if i > 0 {
			exact, like = PartExact, LikePart
		}
		if own == name {
			return exact
		}
		if strings.EqualFold(own, name) {
			return like
		}
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
	docs, err := s.words.Named(name)
	if err != nil {
		return damaged(err)
	}
	for _, doc := range docs {
		r := s.doc(doc)
		if !s.accepts(r) {
			continue
		}
		n := s.graph.Node(r)
		if is := named(&n, name); is > 0 {
			s.place(r).Named = is
		}
	}
	return nil
}

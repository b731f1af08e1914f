package vectors

import (
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// Named is how exactly a text is the name of what was found; the larger, the better. 0: it is not.
type Named uint8

// The ways to be named.
const (
	LikePart  Named = iota + 1 // in other letter case, without what it belongs to: entry for Tree.Entry
	LikeName                   // in other letter case: tree.entry
	PartExact                  // without what it belongs to: Entry
	NameExact                  // Tree.Entry
)

// name is the text as the name of something; a call names a function.
func (s *search) name() string { return strings.TrimSuffix(strings.TrimSpace(s.Text), "()") }

// byName finds what the text is the name of.
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

// named is how exactly a node is called so.
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

package vectors

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
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
	ids := x.baseAliases(word)
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

// aliasOf returns the name of a symbol without its file; "" for other nodes.
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

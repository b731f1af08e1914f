package vectors

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// Resolve is the node that a person names: by its id, by folder and symbol ("state/:Tree.Entry"), or by a folder without
// its slash.
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

package answer

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// NearestIDs returns at most limit of ids, which are in a fixed order, that word was probably meant to be, the best first:
// those that begin with it, then those whose last part (a symbol, a file, a heading or a name) is that of the word, or else
// the fewest edits away from it. An id without a last part, as a heading of signs only, is never meant.
func NearestIDs(word string, ids iter.Seq[string], limit int) []string {
	low := strings.ToLower(strings.TrimPrefix(word, "./"))
	last := lastPart(low)
	var begun, lasts []string
	byLast := map[string][]string{}
	for id := range ids {
		own := strings.ToLower(id)
		l := lastPart(own)
		if l == "" {
			continue
		}
		if strings.HasPrefix(own, low) {
			begun = append(begun, id)
		}
		if byLast[l] == nil {
			lasts = append(lasts, l)
		}
		byLast[l] = append(byLast[l], id)
	}
	alike := byLast[last]
	if alike == nil && last != "" {
		alike = byLast[schemas.GuessWord(last, lasts)]
	}
	var out []string
	for _, found := range [][]string{begun, alike} {
		slices.SortFunc(found, func(a, b string) int {
			return cmp.Or(cmp.Compare(sharedPrefix(low, strings.ToLower(b)), sharedPrefix(low, strings.ToLower(a))),
				cmp.Compare(len(a), len(b)), strings.Compare(a, b))
		})
		for _, id := range found {
			if len(out) < limit && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// lastPart is the part of an id after its last separator: Tree.Entry of state/tree.go:Tree.Entry.
func lastPart(id string) string {
	id = strings.TrimSuffix(id, "/")
	return id[strings.LastIndexAny(id, "/:#")+1:]
}

// sharedPrefix is how many bytes two words have in common at their beginnings and ends.
func sharedPrefix(a, b string) int {
	shorter := min(len(a), len(b))
	begin := 0
	for begin < shorter && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < shorter-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin + end
}

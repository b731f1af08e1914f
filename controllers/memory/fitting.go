package memory

import (
	"cmp"

	"reconcile.dev/reconcile/schemas"
)

// Fitting is the place of the entry that says most likely what an older observation said, where a capture of several is to
// replace it: the one with most pairs of words in common (see [Similar]), else most words, else of the same category, else
// the first. One that only repeats what is known comes last, and one that repeats the older one itself is none; -1 if there
// is no other.
func Fitting(entries []schemas.ObservationEntry, older *schemas.Observation) int {
	best, found := aptness{}, -1
	words := wordsOf(older.Content)
	for i := range entries {
		e := &entries[i]
		if e.Repeats == older.ID {
			continue
		}
		f := aptness{
			isNew: e.Repeats == "", pairs: Similar(e.Content, older.Content),
			words: common(wordsOf(e.Content), words), category: e.Category == older.Category,
		}
		if found < 0 || f.compare(best) < 0 {
			best, found = f, i
		}
	}
	return found
}

// aptness is how well an entry fits an older observation.
type aptness struct {
	isNew    bool
	pairs    float64
	words    int
	category bool
}

// compare orders what fits better first.
func (f aptness) compare(other aptness) int {
	return cmp.Or(preferred(f.isNew, other.isNew), cmp.Compare(other.pairs, f.pairs),
		cmp.Compare(other.words, f.words), preferred(f.category, other.category))
}

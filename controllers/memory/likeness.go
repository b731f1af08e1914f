package memory

import (
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/controllers/similar"
)

// nearDuplicate is from where two contents say the same: see [Similar]. Of 40 words, four that stand apart may differ.
// The measure is that of shingles (A. Broder, On the resemblance and containment of documents, 1997) with two words
// each, as observations are short; its threshold was set by the pairs of TestSame.
const nearDuplicate = 0.8

// Similar returns the similarity of two contents, from 0 to 1: the Dice coefficient of their pairs of neighbouring
// words.
func Similar(a, b string) float64 { return similar.Dice(similar.Pairs(a), similar.Pairs(b)) }

// Same reports whether the contents a and b are the same by their likeness: they say the same in nearly the same words.
// They do not if they differ in a number, a name in code, or a word that turns the meaning round: "30 s" is another
// fact than "60 s".
func Same(a, b string) bool { return newLikeness(a).same(newLikeness(b)) }

// likeness is the comparable form of a content.
type likeness struct {
	pairs   similar.Set
	telling []string // sorted
}

func newLikeness(content string) likeness {
	l := likeness{pairs: similar.Pairs(content)}
	for word := range strings.FieldsFuncSeq(strings.ToLower(content), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' && r != '’'
	}) {
		if turns(word) || strings.ContainsFunc(word, unicode.IsDigit) || strings.Contains(word, "_") {
			l.telling = append(l.telling, word)
		}
	}
	slices.Sort(l.telling)
	l.telling = slices.Compact(l.telling)
	return l
}

// turns reports whether a word turns a meaning round.
func turns(word string) bool {
	switch strings.ReplaceAll(word, "’", "'") {
	case "not", "no", "never", "without", "cannot", "can't", "don't", "doesn't", "didn't", "won't", "isn't", "aren't",
		"wasn't", "nicht", "kein", "keine":
		return true
	}
	return false
}

func (l likeness) same(other likeness) bool {
	if len(l.pairs) == 0 || len(other.pairs) == 0 {
		return false
	}
	return slices.Equal(l.telling, other.telling) && similar.Dice(l.pairs, other.pairs) >= nearDuplicate
}

// sameAsAny reports which of several contents says the same; -1 if none does.
func (l likeness) sameAsAny(others []likeness) int {
	return slices.IndexFunc(others, l.same)
}

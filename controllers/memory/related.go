package memory

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas"
)

// Rule 1 of compaction. Observations of one category are related if they share at least a quarter of their words, or an
// anchor. Equal statements are grouped first, and then the most related ones, as long as their statements fit into one
// content. The rest are paired with their neighbours in time, if possible of the same category: so at most half are
// left.
const (
	relatedFrom = 0.25
	anchorBonus = 0.5
	// neighbours bounds with how many others, next in category and time, each is compared.
	neighbours = 200
)

// unit is what compaction moves as one: an observation, or what an earlier compaction made, with its originals.
type unit struct {
	ids     []string // of the originals, sorted
	newest  *schemas.Observation
	merged  bool
	size    int // characters that its statements take at least
	words   []string
	anchors []string
	group   *group
}

// group is units that come together.
type group struct {
	units []*unit
	size  int
}

// wordsOf are the words by which memories are related: the different ones of a text in small letters, sorted; those of two letters or less say little.
func wordsOf(text string) []string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := strings.FieldsFunc(strings.ToLower(text), between)
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 3 })
	slices.Sort(words)
	return slices.Compact(words)
}

// relate returns the groups of two units and more.
func relate(units []*unit) [][]*unit {
	slices.SortFunc(units, compareUnits)
	for _, u := range units {
		u.group = &group{[]*unit{u}, u.size}
	}
	joinEqual(units)
	for _, p := range relations(units) {
		join(p.a.group, p.b.group)
	}
	rest := pairUp(singles(units), func(a, b *unit) bool { return a.newest.Category == b.newest.Category })
	slices.SortFunc(rest, func(a, b *unit) int { return compareObservations(*a.newest, *b.newest) })
	for _, u := range pairUp(rest, func(_, _ *unit) bool { return true }) {
		joinNearest(u, units)
	}
	var out [][]*unit
	for _, u := range units {
		if len(u.group.units) > 1 && u == u.group.units[0] {
			out = append(out, u.group.units)
		}
	}
	return out
}

// compareUnits orders by category and time.
func compareUnits(a, b *unit) int {
	return cmp.Or(strings.Compare(a.newest.Category, b.newest.Category), compareObservations(*a.newest, *b.newest))
}

// join makes one group of two, if there is room.
func join(a, b *group) bool {
	if a == b || a.size+b.size > contentLimit {
		return false
	}
	if len(b.units) > len(a.units) {
		a, b = b, a
	}
	a.units, a.size = append(a.units, b.units...), a.size+b.size
	for _, u := range b.units {
		u.group = a
	}
	return true
}

type relation struct {
	a, b  *unit
	score float64
}

// relations are the pairs that are related, the most related first. What earlier compactions made does not come
// together without something new.
func relations(units []*unit) (out []relation) {
	for i, a := range units {
		for _, b := range units[i+1 : min(i+1+neighbours, len(units))] {
			if a.newest.Category != b.newest.Category {
				break
			}
			if a.merged && b.merged {
				continue
			}
			if score := similarity(a, b); score >= relatedFrom {
				out = append(out, relation{a, b, score})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y relation) int { return cmp.Compare(y.score, x.score) })
	return out
}

// similarity is the share of the words of both that either has, and a bonus for a common anchor.
func similarity(a, b *unit) float64 {
	score := 0.0
	if n := common(a.words, b.words); n > 0 {
		score = float64(n) / float64(len(a.words)+len(b.words)-n)
	}
	if common(a.anchors, b.anchors) > 0 {
		score += anchorBonus
	}
	return score
}

// common counts what two sorted lists share.
func common(a, b []string) (n int) {
	for len(a) > 0 && len(b) > 0 {
		c := strings.Compare(a[0], b[0])
		if c == 0 {
			n++
		}
		if c <= 0 {
			a = a[1:]
		}
		if c >= 0 {
			b = b[1:]
		}
	}
	return n
}

// pairUp joins each unit with the next one that fits, and returns the rest.
func pairUp(units []*unit, fits func(a, b *unit) bool) (rest []*unit) {
	for i := 0; i < len(units); i++ {
		if i+1 < len(units) && fits(units[i], units[i+1]) && join(units[i].group, units[i+1].group) {
			i++
			continue
		}
		rest = append(rest, units[i])
	}
	return rest
}

// joinNearest joins a unit with the group nearest in time that has room.
func joinNearest(u *unit, units []*unit) {
	at := u.newest.Timestamp
	others := slices.Clone(units)
	slices.SortStableFunc(others, func(a, b *unit) int {
		return cmp.Compare(at.Sub(a.newest.Timestamp.Time).Abs(), at.Sub(b.newest.Timestamp.Time).Abs())
	})
	for _, other := range others {
		if other != u && join(other.group, u.group) {
			return
		}
	}
}

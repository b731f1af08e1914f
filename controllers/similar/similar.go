// Package similar measures the similarity of two texts: by their common words, or by their common pairs of adjacent
// words, which distinguishes "use A, not B" from "use B, not A".
//
// A word is a run of letters, digits and marks in lower case. Stop words do not count; words that invert a meaning (no,
// not, without) do. Each character of a script that does not separate words is one word. The measure is the
// Sørensen-Dice coefficient of two sets: 2·|A∩B| / (|A|+|B|), between 0 and 1.
package similar

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// stopWords carry no meaning of their own here.
const stopWords = "a an and are as at be but by do does for from i in is it its of on or our should so that the this " +
	"to was we what will with you"

// Set is a set of words, or of pairs of words, as sorted hashes: many sets are compared with one.
type Set []uint64

// Words is the set of the words of s that count.
func Words(s string) Set { return sorted(counting(s)) }

// Pairs is the set of the pairs of words of s that count, with its beginning and its end as words of their own. It is
// empty if no word counts.
func Pairs(s string) Set {
	list := counting(s)
	if len(list) == 0 {
		return nil
	}
	out := make(Set, 0, len(list)+1)
	before := uint64(fnvStart)
	for _, w := range list {
		out = append(out, pair(before, w))
		before = w
	}
	return sorted(append(out, pair(before, fnvStart)))
}

// Dice returns the Dice coefficient of two sets: twice the number of hashes that both have, by the sum of their
// lengths; 0 if both are empty.
func Dice(x, y Set) float64 {
	if len(x)+len(y) == 0 {
		return 0
	}
	both := 0
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] < y[j]:
			i++
		case x[i] > y[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return 2 * float64(both) / float64(len(x)+len(y))
}

// Has reports by binary search whether the set has a hash.
func (x Set) Has(hash uint64) bool {
	_, found := slices.BinarySearch(x, hash)
	return found
}

// OfWords returns the similarity of two texts by the words that count: the Dice coefficient of their sets. Texts
// without any word that counts are compared as they stand.
func OfWords(a, b string) float64 {
	x, y := Words(a), Words(b)
	if len(x) == 0 && len(y) == 0 {
		if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
			return 1
		}
		return 0
	}
	return Dice(x, y)
}

// stopHashes are the hashes of stopWords.
var stopHashes = sync.OnceValue(func() Set { return hashed(stopWords) })

func hashed(list string) Set {
	var out Set
	eachWord(list, func(w uint64) { out = append(out, w) })
	return sorted(out)
}

// counting are the hashes of the words of s that count, in their order.
func counting(s string) Set {
	out, stop := make(Set, 0, 16), stopHashes()
	eachWord(s, func(w uint64) {
		if !stop.Has(w) {
			out = append(out, w)
		}
	})
	return out
}

func sorted(s Set) Set {
	slices.Sort(s)
	return slices.Compact(s)
}

// FNV-1a, over runes.
const (
	fnvStart = 14695981039346656037
	fnvPrime = 1099511628211
)

func pair(a, b uint64) uint64 { return (a*fnvPrime ^ b) * fnvPrime }

// eachWord calls yield with the hash of each word.
func eachWord(s string, yield func(uint64)) {
	h, inside := uint64(fnvStart), false
	end := func() {
		if inside {
			yield(h)
		}
		h, inside = fnvStart, false
	}
	for _, r := range s {
		switch {
		case !inWord(r):
			end()
		case isWord(r):
			end()
			yield((fnvStart ^ uint64(r)) * fnvPrime)
		default:
			h, inside = (h^uint64(unicode.ToLower(r)))*fnvPrime, true
		}
	}
	end()
}

// inWord reports whether a character is part of a word whose hash is compared.
func inWord(r rune) bool {
	if r < unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isWord reports whether a character is a word of its own.
func isWord(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

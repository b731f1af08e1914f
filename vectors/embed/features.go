package embed

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/lexical"
)

const (
	// maxText is how many bytes of a text count.
	maxText = 32 << 10
	// Characters of the pieces of words, see pieces.
	leastPiece, mostPiece = 3, 4
	// maxPieces is how many bytes of a term are cut into pieces.
	maxPieces = 32
	// Marks of the begin and end of a term in its pieces; they do not occur in terms.
	begins, finishes = 2, 3
)

// feature is a term or a piece of one, and its frequency in a text.
type feature struct {
	hash  uint64 // whose last bit is isTerm
	count uint32
}

const isTerm = 1

// bag counts the features of a text. The zero value is empty. It is not safe for concurrent use.
type bag struct {
	features []feature
	slots    []uint32 // hash table of numbers of features + 1
	cutter   lexical.Cutter
	terms    []word // each one once
	letters  []byte // of the terms
	padded   []byte // a term between its marks
	starts   []int  // of the characters in padded
}

// word is a term of a bag: the number of its feature, and where it ends in the letters, at most maxPieces of each.
type word struct{ feature, end int }

// fill puts the features of this text into the bag, and no others.
func (b *bag) fill(text string) {
	b.features, b.terms, b.letters = b.features[:0], b.terms[:0], b.letters[:0]
	b.resize(1 << bits.Len(uint(len(text)|127))) // most texts have fewer than half as many features as bytes
	b.cutter.Cut(text, b.addTerm)
	// The pieces of a term count as often as the term does, and are made once.
	from := 0
	for _, w := range b.terms {
		b.addPieces(b.letters[from:w.end], b.features[w.feature].count)
		from = w.end
	}
}

func (b *bag) addTerm(term []byte) {
	n := len(b.features)
	if at := b.add(mixedHash(xxhash.Sum64(term))|isTerm, 1); at == n {
		b.letters = append(b.letters, clipFeature(term, maxPieces)...)
		b.terms = append(b.terms, word{at, len(b.letters)})
	}
}

// addPieces adds all runs of three and of four characters of a term, with marks at its begin and end: so words with
// common parts, and mistyped words, are similar.
func (b *bag) addPieces(term []byte, count uint32) {
	b.padded = append(append(b.padded[:0], begins), term...)
	b.padded = append(b.padded, finishes)
	b.starts = b.starts[:0]
	for i, c := range b.padded {
		if utf8.RuneStart(c) {
			b.starts = append(b.starts, i)
		}
	}
	b.starts = append(b.starts, len(b.padded))
	b.padded = append(b.padded, make([]byte, 8)...) // room to read a word from any place
	for n := leastPiece; n <= mostPiece; n++ {
		for i := 0; i+n < len(b.starts); i++ {
			b.add(mixedHash(b.piece(b.starts[i], b.starts[i+n]))&^isTerm, count)
		}
	}
}

// piece is a piece of the padded term as a number: itself, if it has at most seven bytes, else its hash.
func (b *bag) piece(from, to int) uint64 {
	if n := to - from; n <= 7 {
		return binary.LittleEndian.Uint64(b.padded[from:]) & (1<<(8*n) - 1)
	}
	return xxhash.Sum64(b.padded[from:to])
}

// clipFeature is the begin of s, at most n bytes, without half a character.
func clipFeature[T string | []byte](s T, n int) T {
	for n = min(n, len(s)); n > 0 && n < len(s) && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n]
}

// mixedHash spreads a number over all bits: the finalizer of Appleby's MurmurHash3 (2011).
func mixedHash(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// add adds count occurrences of a feature, and returns its number.
func (b *bag) add(hash uint64, count uint32) int {
	if 2*len(b.features) >= len(b.slots) {
		b.grow()
	}
	mask := uint64(len(b.slots) - 1)
	for at := hash >> 1 & mask; ; at = (at + 1) & mask {
		n := b.slots[at]
		if n == 0 {
			b.features = append(b.features, feature{hash, count})
			b.slots[at] = uint32(len(b.features))
			return len(b.features) - 1
		}
		if f := &b.features[n-1]; f.hash == hash {
			f.count += count
			return int(n - 1)
		}
	}
}

// has reports whether the bag has a feature.
func (b *bag) has(hash uint64) bool {
	mask := uint64(len(b.slots) - 1)
	at := hash >> 1 & mask
	for ; b.slots[at] != 0; at = (at + 1) & mask {
		if b.features[b.slots[at]-1].hash == hash {
			return true
		}
	}
	return false
}

// resize clears the hash table and gives it that many slots, a power of two.
func (b *bag) resize(places int) {
	b.slots = slices.Grow(b.slots[:0], places)[:places]
	clear(b.slots)
}

func (b *bag) grow() {
	b.resize(2 * len(b.slots))
	mask := uint64(len(b.slots) - 1)
	for i, f := range b.features {
		at := f.hash >> 1 & mask
		for b.slots[at] != 0 {
			at = (at + 1) & mask
		}
		b.slots[at] = uint32(i + 1)
	}
}

// fields parts a text into its first line, which is its title, and the rest.
func fields(text string) (title, body string) {
	title, body, _ = strings.Cut(clipFeature(text, maxText), "\n")
	return title, body
}

// appendFeatures appends the features of a field: how many they are, in 4 bytes, and they.
func appendFeatures(data []byte, features []feature) []byte {
	data = binary.LittleEndian.AppendUint32(data, uint32(len(features)))
	for _, f := range features {
		data = append(binary.LittleEndian.AppendUint64(data, f.hash), byte(min(f.count, maxCount)))
	}
	return data
}

// cutFeatures splits off the features that appendFeatures appended.
func cutFeatures(data []byte) (features, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errCutOff
	}
	n, data := uint64(binary.LittleEndian.Uint32(data)), data[4:]
	if n*featureSize > uint64(len(data)) {
		return nil, nil, fmt.Errorf("%w: there are %d bytes of %d features", errCutOff, len(data), n)
	}
	return data[:n*featureSize], data[n*featureSize:], nil
}

package embed

import (
	"encoding/binary"
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
	// Begin and end of a term in its pieces; no term has them.
	begins, finishes = 2, 3
)

// feature is a term or a piece of one, and how often a text has it.
type feature struct {
	hash  uint64 // whose last bit is isTerm
	count uint32
}

const isTerm = 1

// bag counts the features of texts. The zero value is empty. It is not safe for concurrent use.
type bag struct {
	features  []feature
	slots     []uint32 // hash table of numbers of features + 1
	numbers   []uint32 // of the terms of the texts
	different []uint32 // the same, each once
	words     *dictionary
	filled    int // how often it was
}

const (
	// A bag that was filled this often, and its dictionary then, is used for many more texts.
	manyTexts = 64
	// mostWords are the terms of a dictionary: those of a large tree, and their features are 20 MB.
	mostWords = 1 << 17
	// bytes of texts that the dictionaries for few and for many are made for.
	fewBytes, manyBytes = 1 << 14, 1 << 23
)

// fill puts the features of these texts into the bag, and no others.
func (b *bag) fill(texts ...string) {
	switch b.filled++; {
	case b.words == nil:
		b.words = newDictionary(fewBytes)
	case b.filled == manyTexts || len(b.words.counts) > mostWords:
		b.words = newDictionary(manyBytes)
	}
	size := 0
	b.numbers = b.numbers[:0]
	for _, text := range texts {
		size += len(text)
		b.numbers = b.words.terms.Append(b.numbers, text)
	}
	b.features = b.features[:0]
	b.resize(1 << bits.Len(uint(size|127))) // most texts have fewer than half as many features as bytes
	b.words.learn()
	b.different = b.different[:0]
	for _, n := range b.numbers {
		if b.words.counts[n]++; b.words.counts[n] == 1 {
			b.different = append(b.different, n)
		}
	}
	for _, n := range b.different {
		// The pieces of a term count as often as the term does.
		term, pieces := b.words.of(n)
		b.features = append(b.features, feature{term, b.words.counts[n]})
		for _, hash := range pieces {
			b.add(hash, b.words.counts[n])
		}
		b.words.counts[n] = 0
	}
}

// dictionary has the features of terms.
type dictionary struct {
	terms  *lexical.Numberer
	counts []uint32 // of each term, of the texts that are counted
	ends   []uint32 // of each term, in hashes
	hashes []uint64 // the feature of the term, and those of its pieces
	padded []byte   // a term between its marks
	starts []int    // of the characters in padded
}

func newDictionary(bytes int) *dictionary { return &dictionary{terms: lexical.NewNumberer(bytes)} }

// learn makes the features of the terms that are new.
func (d *dictionary) learn() {
	for n := len(d.counts); n < d.terms.Len(); n++ {
		term := d.terms.Term(uint32(n))
		d.hashes = append(d.hashes, mixed(xxhash.Sum64(term))|isTerm)
		d.addPieces(clip(term, maxPieces))
		d.counts, d.ends = append(d.counts, 0), append(d.ends, uint32(len(d.hashes)))
	}
}

// of are the features of a term.
func (d *dictionary) of(n uint32) (term uint64, pieces []uint64) {
	from := uint32(0)
	if n > 0 {
		from = d.ends[n-1]
	}
	return d.hashes[from], d.hashes[from+1 : d.ends[n]]
}

// addPieces adds all runs of three and of four characters of a term, with marks where it begins and ends: so words are
// alike that are made of the same parts, or mistyped.
func (d *dictionary) addPieces(term []byte) {
	d.padded = append(append(d.padded[:0], begins), term...)
	d.padded = append(d.padded, finishes)
	d.starts = d.starts[:0]
	for i, c := range d.padded {
		if utf8.RuneStart(c) {
			d.starts = append(d.starts, i)
		}
	}
	d.starts = append(d.starts, len(d.padded))
	d.padded = append(d.padded, make([]byte, 8)...) // room to read a word from any place
	for n := leastPiece; n <= mostPiece; n++ {
		for i := 0; i+n < len(d.starts); i++ {
			d.hashes = append(d.hashes, mixed(d.piece(d.starts[i], d.starts[i+n]))&^isTerm)
		}
	}
}

// piece is a piece of the padded term as a number: itself, if it has at most seven bytes, else its hash.
func (d *dictionary) piece(from, to int) uint64 {
	if n := to - from; n <= 7 {
		return binary.LittleEndian.Uint64(d.padded[from:]) & (1<<(8*n) - 1)
	}
	return xxhash.Sum64(d.padded[from:to])
}

// clip is the begin of s, at most n bytes, without half a character.
func clip[T string | []byte](s T, n int) T {
	for n = min(n, len(s)); n > 0 && n < len(s) && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n]
}

// mixed spreads a number over all bits: the finalizer of Appleby's MurmurHash3 (2011).
func mixed(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// add counts a piece so many times.
func (b *bag) add(hash uint64, count uint32) {
	if 2*len(b.features) >= len(b.slots) {
		b.grow()
	}
	mask := uint64(len(b.slots) - 1)
	for at := hash >> 1 & mask; ; at = (at + 1) & mask {
		n := b.slots[at]
		if n == 0 {
			b.features = append(b.features, feature{hash, count})
			b.slots[at] = uint32(len(b.features))
			return
		}
		if f := &b.features[n-1]; f.hash == hash {
			f.count += count
			return
		}
	}
}

// resize empties the hash table and gives it so many places, a power of two.
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
	title, body, _ = strings.Cut(clip(text, maxText), "\n")
	return title, body
}

package lexical

import "math/bits"

// numberer cuts texts into terms, as cutter does, and numbers them. Most tokens between two spaces have occurred
// before: their terms are cached and looked up.
type numberer struct {
	vocabulary
	cutter cutter
	memo   []remembered // a hash table; a power of two of them
	lists  []uint32     // the terms of pieces that have none or several
	pieces []piece      // those that are looked up
	// prefetched keeps the compiler from removing the prefetch.
	prefetched uint32
}

// piece is a part of a text, with its key and its place in the memo if it may be there.
type piece struct {
	begin, end int
	key        pieceKey
	slot       uint64
}

// remembered is a piece of text with the numbers of its terms; one without a key is free.
type remembered struct {
	key   pieceKey
	count uint32 // of its terms
	term  uint32 // the only one; otherwise the place of the first in lists
}

// pieceKey is a piece of text: its bytes and, in the highest one, its length.
type pieceKey [3]uint64

const (
	longestPiece = 23 // bytes of a piece that is remembered
	// memoTries is how many places a piece can be at. One that finds none is cut each time, so texts without repetition,
	// and texts that are made to collide, take little longer than without a memo.
	memoTries = 8
	// mostPieces are looked up at once.
	mostPieces = 128
	// A memo has a place for every memoShare bytes of text, but neither fewer than leastMemo nor more than mostMemo.
	memoShare = 64
	leastMemo = 1 << 8
	mostMemo  = 1 << 17
)

// newNumberer returns a numberer for texts of about the given number of bytes.
func newNumberer(bytes int) numberer {
	slots := leastMemo
	for slots < mostMemo && slots < bytes/memoShare {
		slots *= 2
	}
	return numberer{vocabulary: newVocabulary(slots), memo: make([]remembered, slots)}
}

// numbers appends the numbers of the terms of a text in the order of their occurrence.
func (n *numberer) numbers(out []uint32, text string) []uint32 {
	for at := 0; at < len(text); {
		at = n.split(text, at)
		n.touch()
		for i := range n.pieces {
			out = n.terms(out, text, &n.pieces[i])
		}
	}
	return out
}

// split finds the next pieces of a text from a place on, and returns where they end. It parts the text at ASCII characters
// that are in no term, so that each piece can be cut for itself.
func (n *numberer) split(text string, i int) int {
	n.pieces = n.pieces[:0]
	for ; i < len(text) && len(n.pieces) < mostPieces; i++ {
		if kind := byteKind[text[i]]; kind == kindOther || kind == kindJoint {
			continue
		}
		p, kinds := piece{begin: i}, 0
		for ; i < len(text) && byteKind[text[i]] != kindOther; i++ {
			kinds += int(byteKind[text[i]])
		}
		p.end = i
		if kinds == kindWord*(i-p.begin-1)+kindJoint && byteKind[text[i-1]] == kindJoint {
			p.end-- // a word at the end of a sentence is the same word
		}
		if p.end-p.begin <= longestPiece {
			p.key = keyOf(text, p.begin, p.end)
			p.slot = p.key.hash()
		}
		n.pieces = append(n.pieces, p)
	}
	return i
}

// touch reads a little of each place of the pieces in the memo: they lie far apart, and the processor fetches several at
// once if none is waited for.
func (n *numberer) touch() {
	sum, mask := uint32(0), uint64(len(n.memo)-1)
	for i := range n.pieces {
		sum += n.memo[n.pieces[i].slot&mask].count
	}
	n.prefetched = sum
}

// terms appends the terms of a piece of text.
func (n *numberer) terms(out []uint32, text string, p *piece) []uint32 {
	if p.end-p.begin > longestPiece {
		return n.cut(out, text[p.begin:p.end])
	}
	mask := uint64(len(n.memo) - 1)
	for at := range uint64(memoTries) {
		switch r := &n.memo[(p.slot+at)&mask]; {
		case r.key == p.key && r.count == 1:
			return append(out, r.term)
		case r.key == p.key:
			return append(out, n.lists[r.term:r.term+r.count]...)
		case r.key == pieceKey{}:
			before := len(out)
			out = n.cut(out, text[p.begin:p.end])
			*r = n.remember(p.key, out[before:])
			return out
		}
	}
	return n.cut(out, text[p.begin:p.end])
}

// cut appends the terms of a piece that is not remembered.
func (n *numberer) cut(out []uint32, piece string) []uint32 {
	n.cutter.cut(piece, func(term []byte) { out = append(out, n.number(term)) })
	return out
}

// remember keeps the terms of a piece.
func (n *numberer) remember(key pieceKey, terms []uint32) remembered {
	if len(terms) == 1 {
		return remembered{key, 1, terms[0]}
	}
	place := uint32(len(n.lists))
	n.lists = append(n.lists, terms...)
	return remembered{key, uint32(len(terms)), place}
}

// keyOf is the key of text[begin:end], which is not empty and has at most longestPiece bytes.
func keyOf(text string, begin, end int) (key pieceKey) {
	size := end - begin
	if begin+8*len(key) <= len(text) {
		for i := range key {
			key[i] = load64(text[begin+8*i:]) &^ (^uint64(0) << (8 * max(0, size-8*i)))
		}
	} else {
		for i := range size {
			key[i/8] |= uint64(text[begin+i]) << (8 * (i % 8))
		}
	}
	key[len(key)-1] |= uint64(size) << 56
	return key
}

// load64 is the first eight bytes of a text as a little-endian number.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// hash mixes all bits of a key. The factors are fractions of square roots: of five, two and three.
func (k *pieceKey) hash() uint64 {
	high, low := bits.Mul64(k[0]+k[1]*0x6a09e667f3bcc909+k[2]*0xbb67ae8584caa73b, 0x9e3779b97f4a7c15)
	return high ^ low
}

// reset forgets all terms.
func (v *vocabulary) reset() {
	v.texts, v.ends, v.hashes = v.texts[:0], v.ends[:0], v.hashes[:0]
	clear(v.slots)
}

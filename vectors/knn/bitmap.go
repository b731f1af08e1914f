package knn

import "math/bits"

// Bitmap is a set of slots. The zero value is empty. Concurrent reads are safe while no goroutine changes it.
type Bitmap struct {
	words []uint64
	count int
}

// NewBitmap makes a bitmap of the first n slots, with all their bits set.
func NewBitmap(n int) *Bitmap {
	b := &Bitmap{words: make([]uint64, (n+63)/64), count: n}
	for i := range b.words {
		b.words[i] = ^uint64(0)
	}
	if rest := n % 64; rest > 0 {
		b.words[n/64] = 1<<rest - 1
	}
	return b
}

// Remove removes a slot from the bitmap: it clears the bit in its word.
func (b *Bitmap) Remove(slot uint32) {
	if b.Has(slot) {
		b.words[slot>>6] &^= 1 << (slot & 63)
		b.count--
	}
}

// Add adds a slot to the bitmap: it sets the bit in its word and counts it.
func (b *Bitmap) Add(slot uint32) {
	word := int(slot >> 6)
	if word >= len(b.words) {
		b.words = append(b.words, make([]uint64, word+1-len(b.words))...)
	}
	if bit := uint64(1) << (slot & 63); b.words[word]&bit == 0 {
		b.words[word] |= bit
		b.count++
	}
}

// Has reports whether the bitmap has the bit of the slot in its words.
func (b *Bitmap) Has(slot uint32) bool {
	word := int(slot >> 6)
	return word < len(b.words) && b.words[word]&(1<<(slot&63)) != 0
}

// Len returns the count of slots in the bitmap.
func (b *Bitmap) Len() int { return b.count }

// appendTo adds the slots below n to dst, ascending.
func (b *Bitmap) appendTo(dst []uint32, n int) []uint32 {
	for i, word := range b.words {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + bits.TrailingZeros64(word)
			if slot >= n {
				return dst
			}
			dst = append(dst, uint32(slot))
		}
	}
	return dst
}

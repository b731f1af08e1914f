package filter

import (
	"encoding/binary"
	"math/bits"
)

const (
	// A block is eight words of 32 bits; a key has a bit in each, so that looking takes one line of the cache.
	blockSize = 32
	words     = blockSize / 4
	// blockKeys is how many keys a block gets on average until the layer is full.
	blockKeys = 16
	// firstBlocks are the blocks of the first layer; each one after it has twice as many as the one before.
	firstBlocks = 32
	mostBlocks  = 1 << 22
)

// layer is a blocked Bloom filter.
type layer struct {
	keys   uint32
	blocks []byte
}

// newLayer returns the layer that follows that many layers.
func newLayer(before int) layer {
	return layer{blocks: make([]byte, blockSize*min(mostBlocks, firstBlocks<<min(before, 30)))}
}

// full reports whether more keys would make the layer less sure. The last layer that there can be is never full.
func (l *layer) full() bool {
	n := len(l.blocks) / blockSize
	return n < mostBlocks && int(l.keys) >= n*blockKeys
}

// place is the block of a key, and its bits: five for each word.
func (l *layer) place(key uint64) (block []byte, bit uint64) {
	hi, lo := bits.Mul64(key^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	n, _ := bits.Mul64(hi^lo, uint64(len(l.blocks)/blockSize))
	hi, lo = bits.Mul64(key^0xc2b2ae3d27d4eb4f, 0x9fb21c651e98df25)
	return l.blocks[n*blockSize:][:blockSize], hi ^ lo
}

func (l *layer) add(key uint64) {
	block, bit := l.place(key)
	for i := range words {
		at := block[4*i:]
		binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)|1<<(bit&31))
		bit >>= 5
	}
	l.keys++
}

func (l *layer) has(key uint64) bool {
	block, bit := l.place(key)
	for i := range words {
		if binary.LittleEndian.Uint32(block[4*i:])>>(bit&31)&1 == 0 {
			return false
		}
		bit >>= 5
	}
	return true
}

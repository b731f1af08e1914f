package embed

import (
	"math"
	"math/bits"
)

const (
	// bucketBits is how many bits number the buckets of a row of the table.
	bucketBits = 17
	buckets    = 1 << bucketBits
	tableRows  = 2
	// maxCount is how often a feature counts.
	maxCount = 255
	// A term counts termFactor in each of its places, a piece pieceFactor.
	termFactor, pieceFactor = 7, 2
	// piecePlaces is how many components of the vector a piece adds to; a term adds to twice as many.
	piecePlaces = 4
	// weightShift keeps the sums of any text below 1<<31.
	weightShift = 4
)

// bucketsOf are the places of a feature in the table, one in each row.
func bucketsOf(hash uint64) [tableRows]uint32 {
	spread := hash * 0x9e3779b97f4a7c15 // other bits than those that choose components
	return [...]uint32{uint32(spread >> (64 - bucketBits)),
		buckets + uint32(spread>>(64-2*bucketBits))&(buckets-1)}
}

// countWeights are 1+ln(count) in 1/64.
var countWeights = func() (out [maxCount + 1]uint32) {
	for i := 1; i < len(out); i++ {
		ln := uint64(log2(uint64(i), 1)) * 45426 >> 16 // ln 2 in 1/65536
		out[i] = 64 + uint32((ln*64+1<<15)>>16)
	}
	return out
}()

// log2 is the logarithm of a/b >= 1 in 1/65536, rounded down, by integers alone: the same on every machine. a is below
// 1<<40.
func log2(a, b uint64) uint32 {
	whole := 0
	for a>>whole >= 2*b {
		whole++
	}
	// x is a/b/2^whole in 1/2^31: from 1 to 2. Each squaring gives another bit.
	hi, lo := bits.Mul64(a, 1<<31)
	if whole > 0 {
		lo = lo>>whole | hi<<(64-whole)
		hi >>= whole
	}
	x, _ := bits.Div64(hi, lo, b)
	out := uint32(whole)
	for range 16 {
		x = x * x >> 31
		out <<= 1
		if x >= 1<<32 {
			x >>= 1
			out |= 1
		}
	}
	return out
}

// rarity is the weight of a feature that df of docs texts have, 1 to 255: the fourth root of ln(1+docs/(df+1/2)), in
// proportion to that of a feature that none has.
func rarity(docs, df uint64) uint8 {
	idf := float64(log2(2*df+1+2*docs, 2*df+1))
	most := float64(log2(1+2*docs, 1))
	if most == 0 {
		return math.MaxUint8 // nothing was counted
	}
	// Roots are rounded correctly everywhere, where powers are not.
	return uint8(max(1, math.Round(math.MaxUint8*math.Sqrt(math.Sqrt(idf/most)))))
}

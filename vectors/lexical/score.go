package lexical

import "math"

// titleWeight is how many occurrences in the body one in the title is worth. It is at most maxTF.
const titleWeight = 2

// Scores are integers: idf in 1/1024, the weight of an occurrence in 1/16384, a score in 1/65536. So sums do not depend
// on their order.
const (
	idfUnit    = 1 << 10
	impactUnit = 1 << 14
	scoreUnit  = 1 << 16
	scoreShift = 8   // idfUnit * impactUnit >> scoreShift is scoreUnit
	boundUnit  = 142 // of the highest scores of windows, rounded up: 2.2*impactUnit/142 fits into a byte
)

// The least values make every occurrence count: leastIDF * leastImpact >> scoreShift is 1.
const (
	leastIDF    = idfUnit / 16
	leastImpact = 4
)

// maxTotal keeps the sums below from overflowing: 22 * 15 * impactUnit * maxTotal is below 1<<63.
const maxTotal = 1 << 40

// impacts are the weights of all frequencies and lengths, by the impact bits of a posting.
type impacts [impactMask + 1]uint16

// newImpacts computes tf*(k1+1) / (tf + k1*(1-b+b*length*docs/total)) for k1 = 1.2 and b = 0.75, in impactUnit: with
// both sides times ten times total, tf*22*total / (10*tf*total + 3*total + 9*length*docs).
func newImpacts(docs, total uint64) *impacts {
	var out impacts
	for i := range out {
		tf, length := uint64(i>>tfShift), uint64(lengthOf(uint8(i&(1<<tfShift-1))))
		if tf > 0 {
			out[i] = uint16(max(leastImpact, tf*22*total*impactUnit/(10*tf*total+3*total+9*length*docs)))
		}
	}
	return &out
}

// idf is ln(1 + (docs-df+0.5)/(df+0.5)) in idfUnit, for a term that df of docs documents have; leastIDF at least.
func idf(docs uint64, df int) uint32 {
	x := (float64(docs) - float64(df) + 0.5) / (float64(df) + 0.5)
	return max(leastIDF, uint32(math.Log1p(x)*idfUnit+0.5))
}

// Lengths are kept in seven bits: exactly below 32, then eight steps for each doubling.

// lengthClass is the class of a length, the largest one whose length is not above it.
func lengthClass(length int) uint8 {
	if length < 32 {
		return uint8(max(length, 0))
	}
	octave := 0
	for length >= 64 {
		length >>= 1
		octave++
	}
	return uint8(min(32+octave*8+(length-32)/4, 1<<tfShift-1))
}

// lengthOf returns the length that a class represents.
func lengthOf(class uint8) int {
	if class < 32 {
		return int(class)
	}
	octave, step := (class-32)/8, (class-32)%8
	return (32 + 4*int(step)) << octave
}

// boundOf is a weight in boundUnit, rounded up.
func boundOf(weight uint16) uint8 { return uint8((int(weight) + boundUnit - 1) / boundUnit) }

// boundWeight is the score of a boundUnit of a term, rounded up.
func boundWeight(idf uint32, stretch float64) uint32 {
	return uint32(math.Ceil(float64(idf) * boundUnit * stretch / (1 << scoreShift)))
}

// score is what a posting adds to the score of its document.
func (w *impacts) score(posting, idf uint32) uint32 {
	return uint32(w[posting&impactMask]) * idf >> scoreShift
}

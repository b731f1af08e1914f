package knn

import (
	"fmt"
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

const (
	// rotationSeed names the rotation. Another one is another format.
	rotationSeed = 0x7265636f6e63696c
	// deviations is how many standard deviations of a component of a random unit vector codes cover. Beyond is one in
	// 700 components, which are cut off: with more, the upper nibbles alone would tell less.
	deviations = 3.2
	// rounding bounds what float32 arithmetic adds to the distance of a vector from its code, and to inner products.
	rounding = 2e-5
)

// coder makes codes of vectors. Any number of goroutines may use one.
type coder struct {
	dims     int
	stride   int // of the rows of nibbles, in bytes
	words    int // of the codes of 1 bit
	scale    float32
	rotation *kernel.Rotation
	ones     []byte // a row of nibbles that are 1
}

func newCoder(dims int) *coder {
	stride := (dims + kernel.NibbleBlock - 1) / kernel.NibbleBlock * kernel.NibbleBlock / 2
	return &coder{
		dims:     dims,
		stride:   stride,
		words:    kernel.Words(dims),
		scale:    float32(127 / math.Min(1, deviations/math.Sqrt(float64(dims)))),
		rotation: kernel.NewRotation(dims, rotationSeed),
		ones:     slices.Repeat([]byte{0x11}, stride),
	}
}

// coded is a vector in all its forms. The slices are those of the caller, of the lengths that row allocates.
type coded struct {
	unit  []float32 // the vector divided by its length
	code  []int8    // 2*stride long; zeros behind dims
	sum   int32     // of the components of the code
	bits  []uint64
	size  float32 // the length of the vector
	slack float32 // at least the distance of the rotated unit vector from code/scale
}

func (c *coder) row() coded {
	return coded{unit: make([]float32, c.dims), code: make([]int8, 2*c.stride), bits: make([]uint64, c.words)}
}

// check says what is wrong with a vector; nil if nothing is.
func (c *coder) check(v []float32) error {
	if len(v) != c.dims {
		return fmt.Errorf("%w: %d instead of %d", ErrDims, len(v), c.dims)
	}
	switch norm := kernel.Norm(v); {
	case norm == 0:
		return ErrZero
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return ErrNotFinite
	}
	return nil
}

// encodeRow fills to with all forms of v, which check has passed. rotated is scratch, of dims components.
func (c *coder) encodeRow(to *coded, v, rotated []float32) {
	c.encode(to, v, rotated)
	to.slack = c.distance(rotated, to.code)
}

// encode does so but for the slack, which most searches need not know, and leaves the rotated vector in rotated.
func (c *coder) encode(to *coded, v, rotated []float32) {
	to.size = unit(to.unit, v)
	c.rotation.Apply(rotated, to.unit)
	kernel.QuantizeInt8(to.code[:c.dims], rotated, c.scale)
	clear(to.code[c.dims:])
	to.sum = c.sumOf(to.code)
	kernel.SignBits(to.bits, rotated)
}

// sumOf is the sum of the components of a code.
func (c *coder) sumOf(code []int8) int32 {
	var sum [1]int32
	kernel.ScanNibbles(code, c.ones, c.stride, sum[:])
	return sum[0]
}

// unit sets to to v divided by its length, and returns that.
func unit(to, v []float32) (size float32) {
	norm := kernel.Norm(v)
	inverse := 1 / norm
	for i, x := range v {
		to[i] = float32(float64(x) * inverse)
	}
	return float32(math.Min(norm, math.MaxFloat32))
}

// distance is the distance of a rotated vector from what its code stands for, rounded up. It is the same on every
// machine: the conversions keep products from being fused with sums.
func (c *coder) distance(rotated []float32, code []int8) float32 {
	inverse := 1 / float64(c.scale)
	sum := 0.0
	for i, x := range rotated {
		d := float64(x) - float64(float64(code[i])*inverse)
		sum += float64(d * d)
	}
	return float32(math.Sqrt(sum)) + rounding
}

// similarity is what an inner product of codes says about the cosine.
func (c *coder) similarity(dot int32) float32 { return float32(dot) / (c.scale * c.scale) }

// mix makes independent bits of consecutive numbers (the finaliser of SplitMix64: Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

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
	// cutOff is one in how many components of rotated vectors is beyond what codes cover. With fewer, the upper nibbles
	// alone would tell less.
	cutOff = 700
	// deviations is how many standard deviations of a component of a random unit vector codes cover where nothing is known
	// of the vectors.
	deviations = 3.2
	// rounding bounds what float32 arithmetic adds to the distance of a vector from its code, and to inner products.
	rounding = 2e-5
	// unitRatio is the ratio of the scales of two codes that have the same.
	unitRatio = 1 << 16
)

// coder makes codes of vectors. Any number of goroutines may use one.
type coder struct {
	dims     int
	stride   int // of the rows of nibbles, in bytes
	rotation *kernel.Rotation
	// A code is a rotated unit vector without the centre, times the scale. whole says that walks compare whole codes, because
	// the upper nibbles do not keep the order.
	centre []float32
	scale  float32
	whole  bool
}

// newCoder makes a coder that knows nothing of the vectors.
func newCoder(dims int) *coder {
	stride := (dims + kernel.NibbleBlock - 1) / kernel.NibbleBlock * kernel.NibbleBlock / 2
	return &coder{
		dims:     dims,
		stride:   stride,
		scale:    float32(127 / math.Min(1, deviations/math.Sqrt(float64(dims)))),
		centre:   make([]float32, dims),
		rotation: kernel.NewRotation(dims, rotationSeed),
	}
}

// coded is a vector in all its forms. The slices are those of the caller, of the lengths that row allocates.
type coded struct {
	unit  []float32 // the vector divided by its length
	code  []int8    // 2*stride long; zeros behind dims
	sum   int32     // of the components of the code
	norm  int32     // of their squares
	size  float32   // the length of the vector
	slack float32   // at least the distance of the rotated vector from the decoded code
	// ratio is the scale of the code by that of the coder, in parts of unitRatio: a query may lie far from all vectors.
	ratio int64
}

func (c *coder) row() coded {
	return coded{unit: make([]float32, c.dims), code: make([]int8, 2*c.stride)}
}

// check returns the error of an invalid vector, or nil.
func (c *coder) check(v []float32) error {
	if len(v) != c.dims {
		return fmt.Errorf("%w: %d instead of %d", errDims, len(v), c.dims)
	}
	switch norm := kernel.Norm(v); {
	case norm == 0:
		return ErrZero
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return errNotFinite
	}
	return nil
}

// encodeRow fills to with all forms of v, which check has passed. rotated is scratch, of dims components.
func (c *coder) encodeRow(to *coded, v, rotated []float32) {
	c.rotate(to, v, rotated)
	c.quantize(to, rotated, unitRatio)
	to.slack = c.distance(rotated, to)
}

// encode does so for a query, with a scale of its own and without the slack, which most searches need not know. It leaves
// the rotated vector in rotated.
func (c *coder) encode(to *coded, v, rotated []float32) {
	c.rotate(to, v, rotated)
	largest := kernel.Largest(rotated)
	ratio := int64(unitRatio)
	if largest*c.scale > 127 {
		ratio = max(1, int64(127/float64(float32(largest*c.scale))*unitRatio))
	}
	c.quantize(to, rotated, ratio)
}

// rotate sets rotated to the unit vector of v, rotated and without the centre.
func (c *coder) rotate(to *coded, v, rotated []float32) {
	to.size = unit(to.unit, v)
	c.rotation.Apply(rotated, to.unit)
	for i, x := range c.centre {
		rotated[i] -= x
	}
}

func (c *coder) quantize(to *coded, rotated []float32, ratio int64) {
	to.ratio = ratio
	kernel.QuantizeInt8(to.code[:c.dims], rotated, c.scaleAt(ratio))
	clear(to.code[c.dims:])
	to.sum, to.norm = kernel.CodeSums(to.code)
}

// scaleAt is the scale of a code with a ratio.
func (c *coder) scaleAt(ratio int64) float32 {
	return float32(float64(c.scale) * float64(ratio) / unitRatio)
}

// unit sets to to v divided by its length, and returns that.
func unit(to, v []float32) (size float32) {
	norm := kernel.Norm(v)
	kernel.Scale(to, v, 1/norm)
	return float32(math.Min(norm, math.MaxFloat32))
}

// coarseNorm is the sum of the squares of what the upper nibbles of a code tell.
func coarseNorm(code []int8) (norm int32) {
	for _, x := range code {
		c := int32(x)&^15 + 8
		norm += c * c
	}
	return norm
}

// distance returns the distance of a rotated vector from its decoded code, rounded up. It is the same on every
// machine: the conversions keep products from being fused with sums.
func (c *coder) distance(rotated []float32, of *coded) float32 {
	inverse := 1 / float64(c.scaleAt(of.ratio))
	sum := 0.0
	for i, x := range rotated {
		d := float64(x) - float64(float64(of.code[i])*inverse)
		sum += float64(d * d)
	}
	return float32(math.Sqrt(sum)) + rounding
}

// apart is the square of the distance that codes tell, of a query and of a slot at a distance as measure and weigh have it.
func (c *coder) apart(q *coded, dist int32) float64 {
	at, scale := float64(c.scaleAt(q.ratio)), float64(c.scale)
	return float64(q.norm)/(at*at) + float64(dist)/(at*scale)
}

// dist is the distance of a slot that codes tell to be so far apart from a query, the inverse of apart.
func (c *coder) dist(q *coded, apart float64) float64 {
	at, scale := float64(c.scaleAt(q.ratio)), float64(c.scale)
	return (apart - float64(q.norm)/(at*at)) * at * scale
}

// similarity says what a distance of codes tells about the cosine, of a query and of slots: first plus each times the distance.
func (c *coder) similarity(q *coded) (first, each float64) {
	at, scale := float64(c.scaleAt(q.ratio)), float64(c.scale)
	return 1 - float64(q.norm)/(2*at*at), -1 / (2 * at * scale)
}

// noise is the standard deviation of what such a similarity is off by, for vectors at a distance of 1: each component of a code is off
// by at most half a step.
func (c *coder) noise(q *coded) float64 {
	at, scale := float64(c.scaleAt(q.ratio)), float64(c.scale)
	return math.Sqrt((1/(at*at) + 1/(scale*scale)) / 12)
}

// fit makes a coder of the same dimensions for vectors from a sample of them, of length 1: their mean is its centre, and it
// covers all but a few of their components.
func (c *coder) fit(sample [][]float32) *coder {
	fitted := *c
	fitted.centre = make([]float32, c.dims)
	if len(sample) == 0 {
		return &fitted
	}
	sums, rotated := make([]float64, c.dims), make([]float32, c.dims)
	for _, v := range sample {
		for i, x := range v {
			sums[i] += float64(x)
		}
	}
	for i, sum := range sums {
		fitted.centre[i] = float32(sum / float64(len(sample)))
	}
	c.rotation.Apply(fitted.centre, fitted.centre)
	sizes := make([]uint64, 0, len(sample)*c.dims) // the bits of numbers without sign, whose order is theirs
	for _, v := range sample {
		c.rotation.Apply(rotated, v)
		for i, x := range fitted.centre {
			sizes = append(sizes, uint64(math.Float32bits(rotated[i]-x)&^(1<<31)))
		}
	}
	within := len(sizes) - len(sizes)/cutOff
	pick(sizes, within)
	if most := math.Float32frombits(uint32(slices.Max(sizes[:within]))); most > smallest {
		fitted.scale = 127 / most
	} else {
		fitted.scale = 127 / smallest
	}
	return &fitted
}

// smallest is the least component that codes are made for: with less, nothing but rounding is left.
const smallest = 1e-6

// fitTo makes codes fit n vectors, if these are enough.
func (v *vectorView) fitTo(n int, read Source) error {
	if n < fitFrom {
		return nil
	}
	var sample [][]float32
	given := make([]float32, v.dims)
	for _, row := range sampleOf(n, fitted) {
		if err := read(row, given); err != nil {
			return err
		}
		one := make([]float32, v.dims)
		unit(one, given)
		sample = append(sample, one)
	}
	v.coder = v.coder.fit(sample)
	return nil
}

// farthest is the highest key of a slot whose vector may be as similar to a query, of some slack, as that.
func (v *vectorView) farthest(q *coded, similarity, slack float32) uint64 {
	most := float32(0)
	v.spans(func(s span) {
		for _, x := range s.s.slacks[s.from:s.to] {
			most = max(most, x)
		}
	})
	apart := math.Sqrt(2*max(0, 1-float64(similarity))+4*rounding) + float64(slack) + float64(most) + rounding
	dist := v.dist(q, apart*apart)
	if !(dist < math.MaxInt32-nearest) { // of a damaged file it may be no number
		return math.MaxUint64
	}
	return keyOf(int32(dist)+2, 0, 0)
}

func highPlane(s *segment) []byte { return s.high }

func lowPlane(s *segment) []byte { return s.low }

// far is the square of the distance of two codes, less that of the length of the first one, in units of the product of their
// scales: norm is the sum of the squares of the second one, and dot their inner product. Codes are compared by distance and
// not by product: of a code that is off, the error along the vector itself cancels out.
func far(norm, dot int32, ratio int64) int32 { return int32(int64(norm)*ratio>>16) - 2*dot }

// join makes inner products with a code, whose components have that sum, of those with the upper and with the lower
// nibbles.
func join(high, low []int32, sum int32) {
	for i, l := range low {
		high[i] = 16*high[i] + l - 128*sum
	}
}

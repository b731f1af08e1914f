package kernel

import (
	"fmt"
	"math"
	"math/bits"
)

// Rotation is a random rotation of vectors: it preserves lengths and angles, except for rounding, and each component of
// the result mixes all components of the vector, so that all are of about the same size. It is safe for concurrent use.
//
// It takes two rounds. In a round the longest power of two that fits is transformed at the beginning of the vector,
// then at its end, each time after random signs; in between, the first half of the vector is mixed with the second, so
// that every part reaches all others.
type Rotation struct {
	dims  int
	block int      // a power of two, at most dims and more than dims/2
	signs []uint32 // for each transform, a sign bit or 0 for each component
	scale float32  // 1/sqrt(block), which keeps lengths
}

// NewRotation makes the rotation of vectors of dims components that belongs to a seed.
func NewRotation(dims int, seed uint64) *Rotation {
	if dims < 1 {
		panic(fmt.Sprintf("kernel: a rotation of %d dimensions", dims))
	}
	r := &Rotation{dims: dims, block: 1 << (bits.Len(uint(dims)) - 1)}
	r.scale = float32(1 / math.Sqrt(float64(r.block)))
	r.signs = make([]uint32, r.transforms()*r.block)
	for i := range r.signs {
		r.signs[i] = uint32(mix(seed+uint64(i)+1)>>63) << 31
	}
	return r
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014):
// consecutive numbers become independent bits.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// transforms is the number of Walsh-Hadamard transforms: one a round if one covers the vector, else two.
func (r *Rotation) transforms() int {
	if r.block == r.dims {
		return 2
	}
	return 4
}

// Dims returns the dims of the rotation, the number of components of the vectors that it rotates.
func (r *Rotation) Dims() int { return r.dims }

// Apply sets dst to the rotated v. They may be the same slice.
func (r *Rotation) Apply(dst, v []float32) {
	sameLength(len(v), r.dims)
	sameLength(len(dst), r.dims)
	copy(dst, v)
	for t := range r.transforms() {
		at := 0
		if r.block < r.dims {
			if t == 2 {
				half := r.dims / 2
				halves(dst[:half], dst[r.dims-half:])
			}
			at = t % 2 * (r.dims - r.block)
		}
		walsh(dst[at:at+r.block], r.signs[t*r.block:][:r.block], r.scale)
	}
}

// walshGo flips signs, scales, and transforms v, whose length is a power of two.
func walshGo(v []float32, signs []uint32, scale float32) {
	for i, s := range signs {
		// The conversion rounds: without it, the compiler might fuse the product with a sum on some processors.
		v[i] = float32(math.Float32frombits(math.Float32bits(v[i])^s) * scale)
	}
	for h := 1; h < len(v); h *= 2 {
		for at := 0; at < len(v); at += 2 * h {
			for i := at; i < at+h; i++ {
				a, b := v[i], v[i+h]
				v[i], v[i+h] = a+b, a-b
			}
		}
	}
}

// rootHalf is 1/sqrt(2) as a float32.
const rootHalf float32 = 0.70710678118654752440

// halvesGo mixes each component of a with the one of b at its place.
func halvesGo(a, b []float32) {
	for i, x := range a {
		y := b[i]
		a[i], b[i] = float32((x+y)*rootHalf), float32((x-y)*rootHalf)
	}
}

package kernel

import (
	"bytes"
	"unsafe"

	"github.com/viterin/vek/vek32"
	"golang.org/x/sys/cpu"
)

// detect says what the processor, and the operating system, can do.
func detect() Instructions {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return Portable
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI:
		return AVX512
	}
	return AVX2
}

func dot(a, b []float32) float32 {
	if level() == Portable {
		return dotGo(a, b)
	}
	return vek32.Dot(a, b)
}

func dotRows(q, rows []float32, ids []uint32, out []float32) {
	if level() == Portable {
		dotRowsGo(q, rows, ids, out)
		return
	}
	dotRowsAVX2(&q[0], len(q), &rows[0], &ids[0], len(ids), &out[0])
}

// middles are lower nibbles of 8.
var middles = [32]byte(bytes.Repeat([]byte{0x88}, 32))

func joinNibbles(code []int8, high, low []byte) {
	switch {
	case level() == Portable:
		joinNibblesGo(code, high, low)
	case low == nil:
		joinNibblesAVX2(&code[0], &high[0], &middles[0], len(high), 0)
	default:
		joinNibblesAVX2(&code[0], &high[0], &low[0], len(high), 1)
	}
}

func dotsNibbles(q []int8, plane []byte, stride int, ids []uint32, out []int32) {
	switch level() {
	case Portable:
		dotsNibblesGo(q, plane, stride, ids, out)
	case AVX2:
		dotsNibblesAVX2(&q[0], len(q)/2, &plane[0], stride, &ids[0], len(ids), &out[0])
	default:
		dotsNibblesAVX512(&q[0], len(q)/2, &plane[0], stride, &ids[0], len(ids), &out[0])
	}
}

func scanNibbles(q []int8, plane []byte, stride int, out []int32) {
	switch level() {
	case Portable:
		scanNibblesGo(q, plane, stride, out)
	case AVX2:
		dotsNibblesAVX2(&q[0], len(q)/2, &plane[0], stride, nil, len(out), &out[0])
	default:
		four := len(out) &^ 3
		if four > 0 {
			scanNibblesAVX512(&q[0], len(q)/2, &plane[0], stride, four, &out[0])
		}
		if rest := len(out) - four; rest > 0 {
			dotsNibblesAVX512(&q[0], len(q)/2, &plane[four*stride], stride, nil, rest, &out[four])
		}
	}
}

func sift(dots, norms []int32, ratio int64, shift int, add, limit int32, below []uint32) int {
	even, n := 0, 0
	if level() == AVX512 {
		if even = len(dots) &^ 15; even > 0 {
			n = siftAVX512(&dots[0], &norms[0], even, ratio, shift, add, limit, &below[0])
		}
	}
	return siftGo(dots, norms, ratio, shift, add, limit, below, even, n)
}

func quantizeInt8(dst []int8, v []float32, scale float32) {
	even := 0
	if level() >= AVX2 {
		if even = len(v) &^ 7; even > 0 {
			quantizeInt8AVX2(&dst[0], &v[0], even, scale)
		}
	}
	quantizeInt8Go(dst[even:], v[even:], scale)
}

func scale(dst, v []float32, by float64) {
	even := 0
	if level() >= AVX2 {
		if even = len(v) &^ 3; even > 0 {
			scaleAVX2(&dst[0], &v[0], even, by)
		}
	}
	scaleGo(dst[even:], v[even:], by)
}

func largest(v []float32) uint32 {
	even, most := 0, uint32(0)
	if level() >= AVX2 {
		if even = len(v) &^ 7; even > 0 {
			most = largestAVX2(&v[0], even)
		}
	}
	return max(most, largestGo(v[even:]))
}

func codeSums(code []int8) (sum, squares int32) {
	even := 0
	if level() >= AVX2 {
		if even = len(code) &^ 15; even > 0 {
			sum, squares = codeSumsAVX2(&code[0], even)
		}
	}
	restSum, restSquares := codeSumsGo(code[even:])
	return sum + restSum, squares + restSquares
}

func walsh(v []float32, signs []uint32, scale float32) {
	if level() >= AVX2 && len(v) >= 8 {
		walshAVX2(&v[0], len(v), &signs[0], scale)
		return
	}
	walshGo(v, signs, scale)
}

func halves(a, b []float32) {
	even := 0
	if level() >= AVX2 {
		if even = len(a) &^ 7; even > 0 {
			halvesAVX2(&a[0], &b[0], even, rootHalf)
		}
	}
	halvesGo(a[even:], b[even:])
}

// The loops below are in the files *_amd64.s. They trust their arguments.

// dotsNibblesAVX512 sets out[i], for each i below count, to the inner product of the 2n components at q with the nibbles
// of the n bytes at plane + stride*ids[i], or plane + stride*i if ids is nil. n is a multiple of 64, and count at least 1.
//
//go:noescape
func dotsNibblesAVX512(q *int8, n int, plane *byte, stride int, ids *uint32, count int, out *int32)

// scanNibblesAVX512 does so with rows 0 to count-1, where count is a multiple of 4, at least 4.
//
//go:noescape
func scanNibblesAVX512(q *int8, n int, plane *byte, stride int, count int, out *int32)

// dotsNibblesAVX2 does the same as dotsNibblesAVX512.
//
//go:noescape
func dotsNibblesAVX2(q *int8, n int, plane *byte, stride int, ids *uint32, count int, out *int32)

// siftAVX512 does what Sift does with count dots, a multiple of 16, at least 16. What it writes behind the end
// of the numbers in below is not used.
//
//go:noescape
func siftAVX512(dots, norms *int32, count int, ratio int64, shift int, add, limit int32, below *uint32) int

// joinNibblesAVX2 joins n bytes at high, a multiple of 64, with those at low; if step is 0 instead of 1, with the first 32
// at low again and again.
//
//go:noescape
func joinNibblesAVX2(code *int8, high, low *byte, n, step int)

// quantizeInt8AVX2 needs n to be a multiple of 8.
//
//go:noescape
func quantizeInt8AVX2(dst *int8, v *float32, n int, scale float32)

// scaleAVX2 needs n to be a multiple of 4, and at least 4.
//
//go:noescape
func scaleAVX2(dst, v *float32, n int, by float64)

// largestAVX2 needs n to be a multiple of 8, and at least 8.
//
//go:noescape
func largestAVX2(v *float32, n int) uint32

// codeSumsAVX2 needs n to be a multiple of 16, and at least 16.
//
//go:noescape
func codeSumsAVX2(code *int8, n int) (sum, squares int32)

// walshAVX2 needs n to be a power of two, at least 8.
//
//go:noescape
func walshAVX2(v *float32, n int, signs *uint32, scale float32)

// halvesAVX2 sets a[i] and b[i] to (a[i]+b[i])*scale and (a[i]-b[i])*scale; n is a multiple of 8.
//
//go:noescape
func halvesAVX2(a, b *float32, n int, scale float32)

// dotRowsAVX2 sets out[i], for each i below count, to the inner product of the n components at q with those of row ids[i].
// count is at least 1.
//
//go:noescape
func dotRowsAVX2(q *float32, n int, rows *float32, ids *uint32, count int, out *float32)

// prefetch asks for the cache lines of n bytes.
//
//go:noescape
func prefetch(p unsafe.Pointer, n int)

// prefetchRows does so for the rows, of n bytes each, that ids lists. count is at least 1.
//
//go:noescape
func prefetchRows(p unsafe.Pointer, n int, ids *uint32, count int)

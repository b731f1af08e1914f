package kernel

import (
	"fmt"
	"math"
)

// Dot returns the inner product of two float32 vectors of the same length, as a float32.
func Dot(a, b []float32) float32 {
	sameLength(len(a), len(b))
	if len(a) == 0 {
		return 0
	}
	return dot(a, b)
}

// DotRows sets out[i] to the inner product of q with row ids[i] of rows, each as long as q. out is as long as ids.
// What it says of a row does not depend on the others.
func DotRows(q, rows []float32, ids []uint32, out []float32) {
	sameLength(len(ids), len(out))
	if len(q) == 0 || len(ids) == 0 {
		clear(out)
		return
	}
	last := uint32(0)
	for _, id := range ids {
		last = max(last, id)
	}
	needRow(len(q), len(rows), len(q), uint64(last))
	dotRows(q, rows, ids, out)
}

func dotRowsGo(q, rows []float32, ids []uint32, out []float32) {
	for i, id := range ids {
		out[i] = dotGo(q, rows[int(id)*len(q):][:len(q)])
	}
}

// StableDot returns the inner product of two float32 vectors of the same length as a float64, the same on every
// machine. Products of float32 numbers are exact in float64, and are summed in one order.
func StableDot(a, b []float32) float64 {
	sameLength(len(a), len(b))
	var s [4]float64
	for len(a) >= 4 && len(b) >= 4 {
		s[0] += float64(a[0]) * float64(b[0])
		s[1] += float64(a[1]) * float64(b[1])
		s[2] += float64(a[2]) * float64(b[2])
		s[3] += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s[0] += float64(x) * float64(b[i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// Cosine returns the cosine similarity of two float32 vectors of the same length, their inner product divided by their
// norms, from -1 to 1; 0 if a norm is zero.
func Cosine(a, b []float32) float32 {
	norms := math.Sqrt(squares(a) * squares(b))
	if norms == 0 {
		return 0
	}
	return float32(min(1, max(-1, float64(Dot(a, b))/norms)))
}

// Norm returns the Euclidean norm of a float32 vector, the root of the sum of its squares, the same on every machine.
// It is infinite or not a number exactly if some component is.
func Norm(v []float32) float64 { return math.Sqrt(squares(v)) }

// squares sums the squares of the components. A square of a float32 is exact in float64, so a fused multiplication and
// addition gives the same as two instructions, and the largest sum is far from overflow.
func squares(v []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(v) >= 4; v = v[4:] {
		s0 += float64(v[0]) * float64(v[0])
		s1 += float64(v[1]) * float64(v[1])
		s2 += float64(v[2]) * float64(v[2])
		s3 += float64(v[3]) * float64(v[3])
	}
	for _, x := range v {
		s0 += float64(x) * float64(x)
	}
	return (s0 + s1) + (s2 + s3)
}

// dotGo keeps eight sums, which do not wait for each other.
func dotGo(a, b []float32) float32 {
	var s [8]float32
	for len(a) >= 8 && len(b) >= 8 {
		s[0] += a[0] * b[0]
		s[1] += a[1] * b[1]
		s[2] += a[2] * b[2]
		s[3] += a[3] * b[3]
		s[4] += a[4] * b[4]
		s[5] += a[5] * b[5]
		s[6] += a[6] * b[6]
		s[7] += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		s[i] += x * b[i]
	}
	return (s[0] + s[4]) + (s[1] + s[5]) + (s[2] + s[6]) + (s[3] + s[7])
}

func sameLength(a, b int) {
	if a != b {
		panic(fmt.Sprintf("kernel: vectors of %d and %d components", a, b))
	}
}

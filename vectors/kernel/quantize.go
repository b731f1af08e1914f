package kernel

import "math"

// QuantizeInt8 quantizes a float32 vector v to int8 with a scale: it sets dst[i] to v[i]*scale, rounded to the nearest
// integer, halves to the even one, and limited to [-127, 127]. NaN becomes 127.
func QuantizeInt8(dst []int8, v []float32, scale float32) {
	sameLength(len(dst), len(v))
	quantizeInt8(dst, v, scale)
}

func quantizeInt8Go(dst []int8, v []float32, scale float32) {
	for i, f := range v {
		x := f * scale
		if !(x < 127) {
			x = 127
		}
		if !(x > -127) {
			x = -127
		}
		dst[i] = int8(math.RoundToEven(float64(x)))
	}
}

// Scale sets dst to a float32 vector v times a number: the products are rounded once.
func Scale(dst, v []float32, by float64) {
	sameLength(len(dst), len(v))
	scale(dst, v, by)
}

func scaleGo(dst, v []float32, by float64) {
	for i, x := range v {
		dst[i] = float32(float64(x) * by)
	}
}

// Largest returns the largest component of a float32 vector without its sign, 0 if there is none.
func Largest(v []float32) float32 { return math.Float32frombits(largest(v)) }

func largestGo(v []float32) (most uint32) {
	for _, x := range v { // as numbers without sign, whose order is that of their bits
		most = max(most, math.Float32bits(x)&^(1<<31))
	}
	return most
}

// CodeSums returns the sum of the components of an int8 code, and that of their squares.
func CodeSums(code []int8) (sum, squares int32) { return codeSums(code) }

func codeSumsGo(code []int8) (sum, squares int32) {
	for _, x := range code {
		sum += int32(x)
		squares += int32(x) * int32(x)
	}
	return sum, squares
}

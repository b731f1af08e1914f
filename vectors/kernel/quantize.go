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

package kernel

import (
	"fmt"
	"math"
)

// QuantizeInt8 sets dst[i] to v[i]*scale, rounded to the nearest integer, halves to the even one, and limited to
// [-127, 127]. What is not a number becomes 127.
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

// SignBits sets bit i%64 of dst[i/64] if v[i] is negative (also the negative zero), and clears all others. dst has
// [Words] of len(v).
func SignBits(dst []uint64, v []float32) {
	if len(dst) != Words(len(v)) {
		panic(fmt.Sprintf("kernel: %d words for %d bits, which need %d", len(dst), len(v), Words(len(v))))
	}
	signBits(dst, v)
}

// Words returns how many words hold that many bits.
func Words(bits int) int { return (bits + 63) / 64 }

func signBitsGo(dst []uint64, v []float32) {
	for i := range dst {
		var word uint64
		for j, x := range v[i*64 : min(len(v), i*64+64)] {
			word |= uint64(math.Float32bits(x)>>31) << j
		}
		dst[i] = word
	}
}

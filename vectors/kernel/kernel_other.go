//go:build !amd64

package kernel

import "unsafe"

func detect() Instructions { return Portable }

func dot(a, b []float32) float32   { return dotGo(a, b) }
func halves(a, b []float32)        { halvesGo(a, b) }
func prefetch(unsafe.Pointer, int) {}

func prefetchRows(unsafe.Pointer, int, *uint32, int) {}

func dotRows(q, rows []float32, ids []uint32, out []float32) { dotRowsGo(q, rows, ids, out) }

func joinNibbles(code []int8, high, low []byte) { joinNibblesGo(code, high, low) }

func dotsNibbles(q []int8, plane []byte, stride int, ids []uint32, out []int32) {
	dotsNibblesGo(q, plane, stride, ids, out)
}

func scanNibbles(q []int8, plane []byte, stride int, out []int32) {
	scanNibblesGo(q, plane, stride, out)
}

func quantizeInt8(dst []int8, v []float32, scale float32) { quantizeInt8Go(dst, v, scale) }

func walsh(v []float32, signs []uint32, scale float32) { walshGo(v, signs, scale) }

func scale(dst, v []float32, by float64) { scaleGo(dst, v, by) }

func largest(v []float32) uint32 { return largestGo(v) }

func codeSums(code []int8) (sum, squares int32) { return codeSumsGo(code) }

func sift(dots, norms []int32, ratio int64, shift int, add, limit int32, below []uint32) int {
	return siftGo(dots, norms, ratio, shift, add, limit, below, 0, 0)
}

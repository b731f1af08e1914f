//go:build !amd64

package kernel

import "unsafe"

func detect() Instructions { return Portable }

func dot(a, b []float32) float32   { return dotGo(a, b) }
func halves(a, b []float32)        { halvesGo(a, b) }
func prefetch(unsafe.Pointer, int) {}

func prefetchRows(unsafe.Pointer, int, *uint32, int) {}

func joinNibbles(code []int8, high, low []byte) { joinNibblesGo(code, high, low) }

func dotsNibbles(q []int8, plane []byte, stride int, ids []uint32, out []int32) {
	dotsNibblesGo(q, plane, stride, ids, out)
}

func scanNibbles(q []int8, plane []byte, stride int, out []int32) {
	scanNibblesGo(q, plane, stride, out)
}

func quantizeInt8(dst []int8, v []float32, scale float32) { quantizeInt8Go(dst, v, scale) }

func walsh(v []float32, signs []uint32, scale float32) { walshGo(v, signs, scale) }

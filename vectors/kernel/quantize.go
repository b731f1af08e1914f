package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

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

// Largest returns the largest component of a float32 vector without its sign, 0 without one.
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

// NibbleBlock is how many components of a code stand together in rows of nibbles: codes are as long as a multiple of it.
const NibbleBlock = 128

// blockBytes is the length of a block in a row. Byte i has the nibble of component i in its lower half, and that of
// component 64+i in its upper half.
const blockBytes = NibbleBlock / 2

// Split splits each byte of an int8 code into its upper and lower nibble, in rows high and low, each half as long as
// the code. A component is 16*high + low - 128.
func Split(high, low []byte, code []int8) {
	needBlocks(len(code))
	sameLength(2*len(high), len(code))
	sameLength(2*len(low), len(code))
	for at := 0; at < len(code); at += NibbleBlock {
		a, b := code[at:at+blockBytes], code[at+blockBytes:at+NibbleBlock]
		h, l := high[at/2:][:blockBytes], low[at/2:][:blockBytes]
		for i := range blockBytes {
			x, y := uint8(a[i])^0x80, uint8(b[i])^0x80
			h[i], l[i] = x>>4|y&0xf0, x&0x0f|y<<4
		}
	}
}

// Join joins the high and low nibbles of a split code into code. If low is nil, it takes 8 for each lower nibble: the
// middle.
func Join(code []int8, high, low []byte) {
	needBlocks(len(code))
	sameLength(2*len(high), len(code))
	if low != nil {
		sameLength(2*len(low), len(code))
	}
	if len(code) > 0 {
		joinNibbles(code, high, low)
	}
}

func joinNibblesGo(code []int8, high, low []byte) {
	const lower, sign = 0x0f0f0f0f0f0f0f0f, 0x8080808080808080
	order := binary.LittleEndian
	to := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(code))), len(code))
	l := uint64(sign | sign>>4)
	for ; len(to) >= NibbleBlock; to = to[NibbleBlock:] {
		for i := 0; i < blockBytes; i += 8 {
			h := order.Uint64(high[i:])
			if low != nil {
				l = order.Uint64(low[i:])
			}
			order.PutUint64(to[i:], ((h&lower)<<4|l&lower)^sign)
			order.PutUint64(to[blockBytes+i:], (h&^lower|(l>>4)&lower)^sign)
		}
		high = high[blockBytes:]
		if low != nil {
			low = low[blockBytes:]
		}
	}
}

// DotsNibbles sets out[i] to the inner product of q with the nibbles, 0 to 15, of row ids[i] of a plane. While it works
// on some rows it has the next ones fetched: rows that are anywhere in a large index come from memory, and waiting for
// each would cost more than the arithmetic. out is as long as ids.
func DotsNibbles(q []int8, plane []byte, stride int, ids []uint32, out []int32) {
	sameLength(len(ids), len(out))
	needBlocks(len(q))
	if len(q) == 0 || len(ids) == 0 {
		clear(out)
		return
	}
	last := uint32(0)
	for _, id := range ids {
		last = max(last, id)
	}
	needRow(len(q)/2, len(plane), stride, uint64(last))
	dotsNibbles(q, plane, stride, ids, out)
}

// ScanNibbles sets out[i] to the inner product of q with the nibbles of row i of a plane, for all of out.
func ScanNibbles(q []int8, plane []byte, stride int, out []int32) {
	needBlocks(len(q))
	if len(q) == 0 || len(out) == 0 {
		clear(out)
		return
	}
	needRow(len(q)/2, len(plane), stride, uint64(len(out)-1))
	scanNibbles(q, plane, stride, out)
}

// Sift sets dots[i] to norms[i] times ratio by 2^16, rounded down, less dots[i] times 2^shift, plus add: all in 32 bits. It puts
// the numbers of those that are at most limit into below, ascending, and returns how many these are. below is at least as long
// as dots, as is norms.
func Sift(dots, norms []int32, ratio int64, shift int, add, limit int32, below []uint32) int {
	norms, below = norms[:len(dots)], below[:len(dots)]
	return sift(dots, norms, ratio, shift, add, limit, below)
}

// siftGo goes on from a number, n of those before which are in below.
func siftGo(dots, norms []int32, ratio int64, shift int, add, limit int32, below []uint32, from, n int) int {
	for i := from; i < len(dots); i++ {
		x := int32(int64(norms[i])*ratio>>16) - dots[i]<<shift + add
		if dots[i] = x; x <= limit {
			below[n] = uint32(i)
			n++
		}
	}
	return n
}

func needBlocks(components int) {
	if components%NibbleBlock != 0 {
		panic(fmt.Sprintf("kernel: nibbles of %d components, which is no multiple of %d", components, NibbleBlock))
	}
}

func dotNibblesGo(q []int8, row []byte) int32 {
	var s0, s1 int32
	for ; len(q) >= NibbleBlock; q, row = q[NibbleBlock:], row[blockBytes:] {
		low, high := q[:blockBytes], q[blockBytes:NibbleBlock]
		for i, b := range row[:blockBytes] {
			s0 += int32(low[i]) * int32(b&0x0f)
			s1 += int32(high[i]) * int32(b>>4)
		}
	}
	return s0 + s1
}

func dotsNibblesGo(q []int8, plane []byte, stride int, ids []uint32, out []int32) {
	for i, id := range ids {
		at := int(id) * stride
		out[i] = dotNibblesGo(q, plane[at:at+len(q)/2])
	}
}

func scanNibblesGo(q []int8, plane []byte, stride int, out []int32) {
	for i := range out {
		out[i] = dotNibblesGo(q, plane[i*stride:i*stride+len(q)/2])
	}
}

// needRow panics unless a row, of n elements, is within a slice of rows.
func needRow(n, all, stride int, row uint64) {
	if stride < n || all < n || uint64((all-n)/max(stride, 1)) < row {
		panic(fmt.Sprintf("kernel: row %d of %d elements, with stride %d, is not within %d elements", row, n, stride, all))
	}
}

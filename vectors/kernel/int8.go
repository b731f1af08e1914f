package kernel

import "fmt"

// DotInt8 returns the inner product of two codes of the same length, exactly: up to 131,071 components cannot overflow.
func DotInt8(a, b []int8) int32 {
	sameLength(len(a), len(b))
	return dotInt8(a, b)
}

// DotsInt8 sets out[i] to the inner product of q with row ids[i] of codes. While it works on some rows it has the next
// ones fetched: rows that are anywhere in a large index come from memory, and waiting for each would cost more than
// the arithmetic. out is as long as ids.
func DotsInt8(q, codes []int8, stride int, ids []uint32, out []int32) {
	sameLength(len(ids), len(out))
	if len(q) == 0 || len(ids) == 0 {
		clear(out)
		return
	}
	last := uint32(0)
	for _, id := range ids {
		last = max(last, id)
	}
	needRow(len(q), len(codes), stride, uint64(last))
	dotsInt8(q, codes, stride, ids, out)
}

// ScanInt8 sets out[i] to the inner product of q with row i of codes, for all of out.
func ScanInt8(q, codes []int8, stride int, out []int32) {
	if len(q) == 0 || len(out) == 0 {
		clear(out)
		return
	}
	needRow(len(q), len(codes), stride, uint64(len(out)-1))
	scanInt8(q, codes, stride, out)
}

// needRow panics unless a row, of n elements, is within a slice of rows.
func needRow(n, all, stride int, row uint64) {
	if stride < n || all < n || uint64((all-n)/max(stride, 1)) < row {
		panic(fmt.Sprintf("kernel: row %d of %d elements, with stride %d, is not within %d elements", row, n, stride, all))
	}
}

func dotInt8Go(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += int32(a[0]) * int32(b[0])
		s1 += int32(a[1]) * int32(b[1])
		s2 += int32(a[2]) * int32(b[2])
		s3 += int32(a[3]) * int32(b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += int32(x) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

func dotsInt8Go(q, codes []int8, stride int, ids []uint32, out []int32) {
	for i, id := range ids {
		at := int(id) * stride
		out[i] = dotInt8Go(q, codes[at:at+len(q)])
	}
}

func scanInt8Go(q, codes []int8, stride int, out []int32) {
	for i := range out {
		out[i] = dotInt8Go(q, codes[i*stride:i*stride+len(q)])
	}
}

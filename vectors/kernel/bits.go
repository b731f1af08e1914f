package kernel

import "math/bits"

// ScanBits sets out[i] to the Hamming distance of q and row i of codes, in bits, for all of out. A row is words long,
// as q is.
func ScanBits(q, codes []uint64, words int, out []int32) {
	sameLength(len(q), words)
	if words == 0 || len(out) == 0 {
		clear(out)
		return
	}
	needRow(words, len(codes), words, uint64(len(out)-1))
	scanBits(q, codes, words, out)
}

func scanBitsGo(q, codes []uint64, words int, out []int32) {
	for i := range out {
		row := codes[i*words:][:len(q)]
		rest, n := q, 0
		for len(rest) >= 4 && len(row) >= 4 {
			n += bits.OnesCount64(rest[0]^row[0]) + bits.OnesCount64(rest[1]^row[1]) +
				bits.OnesCount64(rest[2]^row[2]) + bits.OnesCount64(rest[3]^row[3])
			rest, row = rest[4:], row[4:]
		}
		for j, w := range rest {
			n += bits.OnesCount64(w ^ row[j])
		}
		out[i] = int32(n)
	}
}

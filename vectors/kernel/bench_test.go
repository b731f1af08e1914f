package kernel

import (
	"fmt"
	"testing"
)

// The benchmarks work on 768 dimensions at each level; what a row takes is the time through the number of rows.

const (
	benchDims = 768
	nearRows  = 1000    // codes of so many rows stay in a processor's cache
	farRows   = 100_000 // codes of so many do not
	listRows  = 16      // of one call with a list
)

// benchLevels runs a benchmark at each level that this processor has.
func benchLevels(b *testing.B, name string, run func(b *testing.B)) {
	for _, l := range Levels() {
		before := Use(l)
		b.Run(fmt.Sprintf("%s/%v", name, l), run)
		Use(before)
	}
}

func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}

func BenchmarkNibbles(b *testing.B) {
	r := random(1)
	all := make([]byte, farRows*benchDims/2)
	for i := range all {
		all[i] = byte(r.Uint32())
	}
	q, out := codes(r, benchDims), make([]int32, farRows)
	lists := make([]uint32, 1<<16)
	for i := range lists {
		lists[i] = r.Uint32N(farRows)
	}
	b.Run("join", func(b *testing.B) {
		for b.Loop() {
			Join(q, all[:benchDims/2], all[benchDims/2:benchDims])
		}
	})
	for _, rows := range []uint32{nearRows, farRows} {
		benchLevels(b, fmt.Sprintf("list of %d/from %d", listRows, rows), func(b *testing.B) {
			ids := make([]uint32, len(lists))
			for i, id := range lists {
				ids[i] = id % rows
			}
			at := 0
			for b.Loop() {
				DotsNibbles(q, all, benchDims/2, ids[at:at+listRows], out[:listRows])
				at = (at + listRows) % len(ids)
			}
			perRow(b, listRows)
		})
		benchLevels(b, fmt.Sprintf("scan/%d", rows), func(b *testing.B) {
			for b.Loop() {
				ScanNibbles(q, all, benchDims/2, out[:rows])
			}
			perRow(b, int(rows))
		})
	}
}

func BenchmarkCodes(b *testing.B) {
	r := random(3)
	v, rotated := floats(r, benchDims), make([]float32, benchDims)
	code := make([]int8, benchDims)
	rotation := NewRotation(benchDims, 1)
	benchLevels(b, "rotate", func(b *testing.B) {
		for b.Loop() {
			rotation.Apply(rotated, v)
		}
	})
	benchLevels(b, "quantize", func(b *testing.B) {
		for b.Loop() {
			QuantizeInt8(code, v, 40)
		}
	})
}

func BenchmarkFloat32(b *testing.B) {
	r := random(4)
	x, y := floats(r, benchDims), floats(r, benchDims)
	sum := float32(0)
	benchLevels(b, "dot", func(b *testing.B) {
		for b.Loop() {
			sum += Dot(x, y)
		}
	})
	b.Run("norm", func(b *testing.B) {
		for b.Loop() {
			sum += float32(Norm(x))
		}
	})
}

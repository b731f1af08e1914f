package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths has everything up to some chunks of the widest registers, and longer ones on both sides of their multiples.
func lengths() []int {
	var all []int
	for n := range 200 {
		all = append(all, n)
	}
	return append(all, 255, 256, 257, 384, 767, 768, 769, 1000, 1024, 1536, 4095, 4096)
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// codes returns n bytes, at an address that is a multiple of nothing; a third of them extreme.
func codes(r *rand.Rand, n int) []int8 {
	out := make([]int8, n+1)[1:]
	for i := range out {
		switch r.IntN(6) {
		case 0:
			out[i] = -128
		case 1:
			out[i] = 127
		default:
			out[i] = int8(r.Uint32())
		}
	}
	return out
}

func floats(r *rand.Rand, n int) []float32 {
	out := make([]float32, n+1)[1:]
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// atLevels runs a test at each level that this processor has. The level is one for the whole process, so no test here is
// parallel to others.
func atLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range Levels() {
		before := Use(l)
		t.Run(l.String(), test)
		Use(before)
	}
}

// exact is the inner product as one would write it down.
func exact(a, b []int8) int32 {
	sum := int64(0)
	for i := range a {
		sum += int64(a[i]) * int64(b[i])
	}
	return int32(sum)
}

func TestLevels(t *testing.T) {
	all := Levels()
	if all[0] != Portable || all[len(all)-1] != level() {
		t.Fatalf("levels %v, in use %v", all, level())
	}
	before := Use(Portable)
	if level() != Portable || Use(AVX512) != Portable || level() != before {
		t.Errorf("Use does not change the level and tell the one before; now %v, at first %v", level(), before)
	}
	if fmt.Sprint(Portable, AVX2, AVX512) != "Go AVX2 AVX-512" {
		t.Error(fmt.Sprint(Portable, AVX2, AVX512))
	}
}

// guarded returns n numbers with others on both sides, and a check that those have not changed.
func guarded(n int) (out []int32, intact func() bool) {
	const guard = -77
	all := make([]int32, n+16)
	for i := range all {
		all[i] = guard
	}
	return all[8 : 8+n : 8+n], func() bool {
		others := slices.Concat(all[:8], all[8+n:])
		return !slices.ContainsFunc(others, func(x int32) bool { return x != guard })
	}
}

// codeLengths are multiples of NibbleBlock.
var codeLengths = []int{128, 256, 384, 512, 768, 1024, 1536, 4096}

func TestSplitAndJoin(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		r := random(2)
		for _, n := range append([]int{0}, codeLengths...) {
			code, joined := codes(r, n), make([]int8, n)
			high, low := make([]byte, n/2), make([]byte, n/2)
			Split(high, low, code)
			if Join(joined, high, low); !slices.Equal(joined, code) {
				t.Fatalf("%d components: %v became %v", n, code, joined)
			}
			Join(joined, high, nil)
			for i, x := range code {
				if middle := (int(x)+128)/16*16 - 128 + 8; int(joined[i]) != middle {
					t.Fatalf("component %d of %d, %d: without its lower nibble it is %d, want %d", i, n, x, joined[i], middle)
				}
			}
		}
	})
}

// planes are rows of nibbles of codes, and the codes.
func planes(r *rand.Rand, n, stride, rows int) (high, low []byte, all [][]int8) {
	size := stride*(rows-1) + n/2 // the last row may end with the slice
	high, low = make([]byte, size+1)[1:], make([]byte, size+1)[1:]
	for i := range rows {
		code := codes(r, n)
		Split(high[i*stride:][:n/2], low[i*stride:][:n/2], code)
		all = append(all, code)
	}
	return high, low, all
}

// TestNibblesAreExactAtAllLevels: the inner products with both nibbles make up the one with the code.
func TestNibblesAreExactAtAllLevels(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		r := random(2)
		for _, n := range codeLengths {
			for rows := 1; rows < 40; rows++ {
				stride := n/2 + r.IntN(3)*r.IntN(70)
				high, low, all := planes(r, n, stride, rows)
				q, sum := codes(r, n), int32(0)
				if rows == 7 { // the largest sums
					q, all[0] = slices.Repeat([]int8{-128}, n), slices.Repeat([]int8{127}, n)
					Split(high[:n/2], low[:n/2], all[0])
				}
				for _, x := range q {
					sum += int32(x)
				}
				upper, intact := guarded(rows)
				lower, intact2 := guarded(rows)
				ScanNibbles(q, high, stride, upper)
				ScanNibbles(q, low, stride, lower)
				for i, code := range all {
					if got, want := 16*upper[i]+lower[i]-128*sum, exact(q, code); got != want {
						t.Fatalf("row %d of %d, stride %d: %d, want %d", i, n, stride, got, want)
					}
				}
				for count := range rows {
					listed, intact3 := guarded(count)
					ids := make([]uint32, count)
					for i := range ids {
						ids[i] = uint32(r.IntN(rows))
					}
					DotsNibbles(q, high, stride, ids, listed)
					for i, id := range ids {
						if listed[i] != upper[id] {
							t.Fatalf("rows %v of %d: number %d is %d, want %d", ids, n, i, listed[i], upper[id])
						}
					}
					if !intact3() {
						t.Fatalf("%d rows of %d: written beside out", count, n)
					}
				}
				if !intact() || !intact2() {
					t.Fatalf("%d rows of %d: written beside out", rows, n)
				}
			}
		}
	})
}

func TestQuantizeInt8(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.4, 126.5, 127, 127.5, 1e30, inf, -126.5, -127, -128, -1e30, -inf, nan, 0.49999997}
	want := []int8{0, 0, 2, 2, 0, -2, 126, 126, 127, 127, 127, 127, -126, -127, -127, -127, -127, 127, 0}
	atLevels(t, func(t *testing.T) {
		r := random(4)
		got := make([]int8, len(special))
		if QuantizeInt8(got, special, 1); !slices.Equal(got, want) {
			t.Errorf("%v\n    become %v,\nnot %v", special, got, want)
		}
		for _, n := range lengths() {
			v := floats(r, n)
			got, want := make([]int8, n), make([]int8, n)
			QuantizeInt8(got, v, 50.3)
			if quantizeInt8Go(want, v, 50.3); !slices.Equal(got, want) {
				t.Fatalf("%d components: %v, want %v", n, got, want)
			}
		}
	})
}

// relative is how far a number is off, as a part of what the terms of a sum may amount to.
func relative(got float32, want, scale float64) float64 {
	return math.Abs(float64(got)-want) / (scale + 1e-30)
}

func TestFloatsAgree(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		r := random(6)
		for _, n := range lengths() {
			a, b := floats(r, n), floats(r, n)
			var dot, aa, bb float64
			for i := range a {
				x, y := float64(a[i]), float64(b[i])
				dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
			}
			both := math.Sqrt(aa * bb)
			if got := Dot(a, b); relative(got, dot, both) > 1e-6 {
				t.Errorf("Dot of %d: %g, want %g", n, got, dot)
			}
			if got := Cosine(a, b); n > 0 && relative(got, dot/both, 1) > 1e-6 || n == 0 && got != 0 {
				t.Errorf("Cosine of %d: %g, want %g", n, got, dot/both)
			}
			if got := Norm(a); math.Abs(got-math.Sqrt(aa)) > 1e-12*math.Sqrt(aa) {
				t.Errorf("Norm of %d: %g, want %g", n, got, math.Sqrt(aa))
			}
		}
	})
}

// TestDotRows: the inner products with some rows are those with each, whatever their number and length are.
func TestDotRows(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		r := random(13)
		for _, n := range lengths() {
			const rows = 11
			q, all := floats(r, n), floats(r, rows*n)
			for count := range 10 {
				ids, out := make([]uint32, count), make([]float32, count)
				for i := range ids {
					ids[i] = uint32(r.IntN(rows))
				}
				if count > 1 {
					ids[count-1] = rows - 1
				}
				DotRows(q, all, ids, out)
				for i, id := range ids {
					row, alone := all[int(id)*n:][:n], []float32{0}
					if DotRows(q, all, []uint32{id}, alone); alone[0] != out[i] {
						t.Fatalf("%d of %d rows of %d: %g, alone %g", i, count, n, out[i], alone[0])
					}
					if scale := Norm(q) * Norm(row); relative(out[i], float64(Dot(q, row)), scale) > 1e-6 {
						t.Fatalf("%d of %d rows of %d: %g, want %g", i, count, n, out[i], Dot(q, row))
					}
				}
			}
		}
	})
}

// TestSift: all levels find the same numbers, also at the limit and beyond 32 bits.
func TestSift(t *testing.T) {
	r := random(15)
	for _, n := range lengths() {
		dots, norms := make([]int32, n), make([]int32, n)
		for i := range dots {
			dots[i], norms[i] = int32(r.IntN(1<<22)-1<<21), int32(r.IntN(1<<26))
			if i%7 == 3 {
				dots[i], norms[i] = int32(r.Uint32()), int32(r.Uint32())
			}
		}
		for _, c := range []struct {
			ratio int64
			shift int
			add   int32
		}{{1 << 16, 5, 300}, {40_000, 5, -7}, {1, 1, 0}, {65_535, 1, math.MaxInt32}} {
			want := slices.Clone(dots)
			siftGo(want, norms, c.ratio, c.shift, c.add, 0, make([]uint32, n), 0, 0)
			limit := int32(math.MaxInt32)
			if n > 1 {
				limit = want[n/2]
			}
			var below []uint32
			for i, x := range want {
				if exact := int32(int64(norms[i])*c.ratio>>16) - dots[i]<<c.shift + c.add; exact != x {
					t.Fatalf("%d: %d, want %d", i, x, exact)
				}
				if x <= limit {
					below = append(below, uint32(i))
				}
			}
			atLevels(t, func(t *testing.T) {
				got, numbers := slices.Clone(dots), make([]uint32, n)
				k := Sift(got, norms, c.ratio, c.shift, c.add, limit, numbers)
				if !slices.Equal(got, want) || !slices.Equal(numbers[:k], below) {
					t.Errorf("%d, %+v: %v, %v, want %v, %v", n, c, got, numbers[:k], want, below)
				}
			})
		}
	}
}

// TestPartsOfCodes: what codes are made of is the same bits at each level.
func TestPartsOfCodes(t *testing.T) {
	r := random(14)
	for _, n := range lengths() {
		v, code := floats(r, n), codes(r, n)
		if n > 2 {
			v[n-1] = -1e9
		}
		want := make([]float32, n)
		scaleGo(want, v, 0.37)
		wantSum, wantSquares := codeSumsGo(code)
		atLevels(t, func(t *testing.T) {
			got := make([]float32, n)
			if Scale(got, v, 0.37); !slices.Equal(got, want) {
				t.Errorf("Scale of %d: %v, want %v", n, got, want)
			}
			if got, want := Largest(v), math.Float32frombits(largestGo(v)); got != want || n > 2 && got != 1e9 {
				t.Errorf("Largest of %d: %g, want %g", n, got, want)
			}
			if sum, squares := CodeSums(code); sum != wantSum || squares != wantSquares {
				t.Errorf("CodeSums of %d: %d and %d, want %d and %d", n, sum, squares, wantSum, wantSquares)
			}
		})
	}
}

func TestFloatsAtTheEdge(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		v := []float32{3, -4, 0}
		if got := Cosine(v, []float32{0, 0, 0}); got != 0 {
			t.Errorf("cosine with a zero vector: %g", got)
		}
		if Cosine(v, v) != 1 || Cosine(v, []float32{-3, 4, 0}) != -1 {
			t.Errorf("cosine with itself %g, with its opposite %g", Cosine(v, v), Cosine(v, []float32{-3, 4, 0}))
		}
		largest := slices.Repeat([]float32{math.MaxFloat32}, 4096)
		if got := Norm(largest); math.Abs(got/(64*math.MaxFloat32)-1) > 1e-12 {
			t.Errorf("the norm of the largest vector is %g", got)
		}
		if got := Norm([]float32{1, float32(math.Inf(-1))}); !math.IsInf(got, 1) {
			t.Errorf("the norm of an infinite vector is %g", got)
		}
		if got := Norm([]float32{1, float32(math.NaN())}); !math.IsNaN(got) {
			t.Errorf("the norm of what is not a number is %g", got)
		}
	})
}

func TestRotation(t *testing.T) {
	for _, dims := range append(lengths()[1:], 13, 2048) {
		r := random(uint64(dims))
		a, b := floats(r, dims), floats(r, dims)
		rotation := NewRotation(dims, 42)
		var first, second []float32
		for _, l := range Levels() {
			before := Use(l)
			ra, rb := make([]float32, dims), slices.Clone(b)
			rotation.Apply(ra, a)
			rotation.Apply(rb, rb)
			Use(before)
			if first == nil {
				first, second = ra, rb
			}
			if !slices.Equal(ra, first) || !slices.Equal(rb, second) {
				t.Fatalf("%d dimensions: %v rotates otherwise than %v", dims, l, Portable)
			}
		}
		if was, is := Norm(a), Norm(first); math.Abs(was-is) > 2e-6*was {
			t.Errorf("%d dimensions: the length %g became %g", dims, was, is)
		}
		if was, is := Dot(a, b), Dot(first, second); math.Abs(float64(was-is)) > 4e-6*Norm(a)*Norm(b) {
			t.Errorf("%d dimensions: the inner product %g became %g", dims, was, is)
		}
	}
}

// TestRotationEvens: a vector with all its weight in one component has it in all of them afterwards.
func TestRotationEvens(t *testing.T) {
	for _, dims := range []int{64, 100, 384, 768, 1000, 1024, 1536, 4095} {
		rotation := NewRotation(dims, 7)
		for _, at := range []int{0, dims / 2, dims - 1} {
			v := make([]float32, dims)
			v[at] = 1
			rotation.Apply(v, v)
			largest, zeros := float32(0), 0
			for _, x := range v {
				if largest = max(largest, x, -x); x == 0 {
					zeros++
				}
			}
			// Of so many normal numbers the largest is about 3 to 4 deviations of 1/sqrt(dims).
			if limit := 8 / math.Sqrt(float64(dims)); float64(largest) > limit || zeros > dims/2 {
				t.Errorf("component %d of %d: the largest is %g, more than %g, or too many are zero: %d", at, dims, largest, limit, zeros)
			}
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	v := floats(random(8), 96)
	a, b, c := make([]float32, 96), make([]float32, 96), make([]float32, 96)
	NewRotation(96, 1).Apply(a, v)
	NewRotation(96, 1).Apply(b, v)
	NewRotation(96, 2).Apply(c, v)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("equal seeds must rotate the same way, others differently")
	}
	if NewRotation(96, 1).Dims() != 96 {
		t.Error("the rotation does not know its dimensions")
	}
}

// TestRotationIsFixed holds the rotation to what files may have been written with.
func TestRotationIsFixed(t *testing.T) {
	const was = 0x8dd5e0e3dfc5387a
	v := make([]float32, 100)
	for i := range v {
		v[i] = float32(i) - 30
	}
	NewRotation(100, 1).Apply(v, v)
	sum := uint64(0)
	for _, x := range v {
		sum = mix(sum ^ uint64(math.Float32bits(x)))
	}
	if sum != was {
		t.Errorf("the sum of a rotated vector is %#x, was %#x: indexes that were written before cannot be searched", sum, uint64(was))
	}
}

func TestPrefetchReadsNothing(t *testing.T) {
	s := floats(random(9), 1000)
	Prefetch(s)
	Prefetch(s[:0])
	Prefetch([]uint64{1})
	rows := []uint32{0, 99, 100, 1 << 31} // some of which are not there
	PrefetchRows(s, 10, rows)
	PrefetchRows(s, 10, nil)
	PrefetchRows(s[:0], 10, rows)
	if n := testing.AllocsPerRun(10, func() { Prefetch(s); PrefetchRows(s, 10, rows) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestNothingAllocates(t *testing.T) {
	r := random(10)
	q, code := codes(r, 768), codes(r, 768)
	high, low, _ := planes(r, 768, 384, 16)
	v, rotation := floats(r, 768), NewRotation(768, 1)
	atLevels(t, func(t *testing.T) {
		n := testing.AllocsPerRun(10, func() {
			var out [16]int32
			ids := [3]uint32{7, 1, 15}
			DotsNibbles(q, high, 384, ids[:], out[:3])
			dots := [4]float32{}
			rows := [4]uint32{}
			DotRows(v, v, rows[:], dots[:])
			ScanNibbles(q, low, 384, out[:])
			Join(code, high[:384], low[:384])
			Split(high[:384], low[:384], code)
			rotation.Apply(v, v)
			QuantizeInt8(q, v, 100)
			Scale(v, v, 1)
			numbers := [16]uint32{}
			Sift(out[:], out[:], 1<<16, 5, 1, 0, numbers[:])
			Largest(v)
			CodeSums(q)
		})
		if n != 0 {
			t.Errorf("%g allocations", n)
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	out := make([]int32, 3)
	for name, call := range map[string]func(){
		"Dot":           func() { Dot(make([]float32, 2), make([]float32, 3)) },
		"dot rows":      func() { DotRows(make([]float32, 8), make([]float32, 31), []uint32{0, 3}, make([]float32, 2)) },
		"dots":          func() { DotRows(make([]float32, 8), make([]float32, 32), []uint32{0, 3}, make([]float32, 1)) },
		"components":    func() { Split(make([]byte, 50), make([]byte, 50), make([]int8, 100)) },
		"split":         func() { Split(make([]byte, 64), make([]byte, 63), make([]int8, 128)) },
		"join":          func() { Join(make([]int8, 128), make([]byte, 128), nil) },
		"row too high":  func() { DotsNibbles(make([]int8, 128), make([]byte, 191), 64, []uint32{0, 2, 1}, out) },
		"row very high": func() { DotsNibbles(make([]int8, 128), make([]byte, 192), 64, []uint32{1 << 31}, out[:1]) },
		"out":           func() { DotsNibbles(make([]int8, 128), make([]byte, 192), 64, []uint32{1}, out) },
		"stride":        func() { ScanNibbles(make([]int8, 128), make([]byte, 192), 63, out) },
		"scan":          func() { ScanNibbles(make([]int8, 128), make([]byte, 191), 64, out) },
		"quantize":      func() { QuantizeInt8(make([]int8, 2), make([]float32, 3), 1) },
		"sift":          func() { Sift(make([]int32, 3), make([]int32, 2), 1, 1, 1, 1, make([]uint32, 3)) },
		"sift below":    func() { Sift(make([]int32, 3), make([]int32, 3), 1, 1, 1, 1, make([]uint32, 2)) },
		"scale":         func() { Scale(make([]float32, 2), make([]float32, 3), 1) },
		"rotation":      func() { NewRotation(0, 1) },
		"rotate":        func() { NewRotation(8, 1).Apply(make([]float32, 8), make([]float32, 9)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

package kernel

import "sync/atomic"

// Instructions is a set of processor instructions that the loops of this package are written for; a greater one includes
// the smaller ones.
type Instructions uint32

const (
	// Portable is plain Go.
	Portable Instructions = iota
	// AVX2 needs AVX2 and FMA, which x86 processors have since about 2013.
	AVX2
	// AVX512 needs the foundation of AVX-512 and its dot products of bytes (VNNI): since about 2019.
	AVX512
)

// String returns the name of the instructions: AVX2, AVX-512, or Go for the portable ones.
func (i Instructions) String() string {
	switch i {
	case AVX2:
		return "AVX2"
	case AVX512:
		return "AVX-512"
	}
	return "Go"
}

// inUse is the level of all functions, as an Instructions.
var inUse atomic.Uint32

// bestLevel sets inUse before anything can run.
var bestLevel = func() Instructions {
	best := detect()
	inUse.Store(uint32(best))
	return best
}()

// level returns the instructions in use.
func level() Instructions { return Instructions(inUse.Load()) }

// Levels returns all levels of instructions that this processor has, from the portable to the best level.
func Levels() []Instructions {
	var all []Instructions
	for l := Portable; l <= bestLevel; l++ {
		all = append(all, l)
	}
	return all
}

// Use makes all functions work at a level, or at the best that the processor has below it, and returns the one before.
// It is for tests and benchmarks; calls that run meanwhile work at one or the other.
func Use(level Instructions) Instructions {
	return Instructions(inUse.Swap(uint32(min(level, bestLevel))))
}

// Package kernel has the inner loops of vector search: inner products, distances and scans over float32 vectors and
// over the halves of codes of eight bits a dimension, and the functions that encode vectors.
//
// # Levels
//
// Each loop exists for several instruction sets, see [Instructions]. The best that the processor has is chosen at
// start; [Use] chooses another one, for tests and benchmarks. What works on integers ([DotsNibbles],
// [ScanNibbles]) or makes codes ([Scale], [QuantizeInt8], [CodeSums], [Rotation]) gives the same bits at every level
// and on every machine, so that an index which is made by these alone is the same bytes everywhere; [Norm], too.
// [Dot], [DotRows] and [Cosine] add float32 numbers in an order that depends on the level: their results differ in the last
// digits, and are good for ranking and not for deciding how an index is built.
//
// # Codes
//
// A code of eight bits is a component times a scale, rounded ([QuantizeInt8]). That loses little when all components
// are of about the same size, which those of embeddings are not: a few are large in every vector. A random [Rotation]
// keeps all distances and evens the components out. It consists of random signs and Walsh-Hadamard transforms, after
// Ailon and Chazelle, "The Fast Johnson-Lindenstrauss Transform and Approximate Nearest Neighbors" (2009).
//
// # Nibbles
//
// A walk through a large index waits for memory, and half of it is nearly as good: the upper four bits of each component.
// So codes of eight bits are kept as two planes of rows, one of their upper and one of their lower nibbles ([Split]). The
// inner products of a code with both ([DotsNibbles], [ScanNibbles]) make up that with the whole code.
//
// # Slots
//
// Functions that take a stride work on rows of one slice: row i begins at i*stride. A list of rows is checked before
// memory is touched; a wrong length or an unknown row is a mistake of the caller, and panics.
package kernel

import (
	"sync/atomic"
	"unsafe"
)

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

// PrefetchRows does as Prefetch for the rows of s, width elements each, that ids lists. It reads none of them: there may be
// fewer.
func PrefetchRows[T any](s []T, width int, ids []uint32) {
	var one T
	if len(s) > 0 && len(ids) > 0 {
		prefetchRows(unsafe.Pointer(unsafe.SliceData(s)), width*int(unsafe.Sizeof(one)), &ids[0], len(ids))
	}
}

// Prefetch prefetches the memory of a slice into the cache of the processor, and does not wait for it. It is of use for
// what will be read some hundred instructions later; where a processor or its assembly is not known here, it does
// nothing.
func Prefetch[T any](s []T) {
	var one T
	if len(s) > 0 {
		prefetch(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(one)))
	}
}

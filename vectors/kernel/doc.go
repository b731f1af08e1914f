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

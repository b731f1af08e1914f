// Package knn finds the vectors that are most similar to one: k nearest neighbours by the cosine of the angle, in an index
// that is a function of the vectors.
//
// # How it searches
//
// A vector is kept twice: as it is, of length one, and as a code of 8 bits a component, of the vector in a random rotation,
// see package kernel, and without the mean of all: where vectors have much in common, only what they have not tells them
// apart. Codes are kept as two planes of nibbles. A search compares codes by their distance, and the best exactly.
//
// Up to [Options.GraphFrom] vectors are in lists of near ones, each around a pivot (Sivic and Zisserman, "Video Google: A Text
// Retrieval Approach to Object Matching in Videos", 2003). A search compares the codes of the lists whose pivots are nearest: by
// default those whose pivots are not much farther than the nearest one (Chen et al., "SPANN: Highly-efficient Billion-scale
// Approximate Nearest Neighborhood Search", 2021), else until they are many times as many as ef. If that is most vectors, or these
// are few, it looks at no lists. Lists are made in a tenth of the time that a graph takes.
//
// More are in a graph that is walked (Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using
// Hierarchical Navigable Small World Graphs", 2020): from the entry at the highest level greedily down, at the level above
// the lowest among some, the more the larger ef is, then at the lowest level among the ef best until none of them has a
// neighbour that is better. It looks at the upper nibbles only, if a sample of the vectors shows that these keep their order:
// what it takes is the memory that it waits for. All ef, and as many more as it takes for the nearest of a sample to be among them, are compared by both,
// and of these exactly, in their order, until what codes were off says that no other can be among the best. A walk that
// would meet most of the vectors is a scan of the codes instead. A filter takes part in the walk: what does not pass is
// walked through. What few pass is scanned.
//
// How large ef has to be, and how much farther pivots may be, depends on the vectors. A build searches for some of them, as if they
// were not in the index, and for what lies between and beyond some, compares what is found with exact searches, and chooses the
// least that finds enough: for the default and for thorough searches, see [Index.Efforts].
//
// An exact search scans the codes of 8 bits, which say how similar a vector is at most, and compares vectors in that
// order until none that is left can be among the best.
//
// # How it is built
//
// Only integers decide the structure: distances of codes, which are made, and calibrated, by floating-point arithmetic that
// gives the same on every machine. Levels follow from a hash of the ID. Vectors are linked in
// the order of their IDs, in batches: those of a batch look for neighbours in the graph before it, and among those of the
// batch that come to nearly the same place, all at the same time; then the links are set in a fixed order. So [Build] makes the same bytes of the same vectors in any
// order, with any number of threads, on any processor. What is changed later ([Index.Put], [Index.Delete]) gives the same
// answers as far as a walk finds them, and the same bytes again after the next Build. When as many vectors came and went as
// there were, searches are calibrated anew.
//
// # Changes
//
// Searches take no lock. A change is published as a new view of the same arrays; a search keeps the view that it began
// with and sees nothing of later changes. Slots are used again when no search is left that might know what was in them.
// A replaced or deleted vector stays in the graph as a way to others until some have gathered; then all links to them
// are replaced by links to what they led to, and what cannot be reached any more is linked again.
//
// # Format
//
// [Index.AppendTo] writes a header and sections, little-endian, each at a multiple of 64 bytes; n is the number of slots:
//
//	header   magic, version, options, sizes, entry, number of lists, scale of codes, efforts, checksum of each section, checksum of the header
//	centre   4 bytes a dimension: what was taken from rotated vectors, float32
//	ids      8 n bytes
//	order    4 n bytes: the slots by ID
//	sizes    4 n bytes: lengths of the vectors as they came, float32
//	slacks   4 n bytes: distances of the rotated vectors from their codes, float32
//	norms    4 n bytes: sums of the squares of codes, int32
//	coarse   4 n bytes: the same of what their upper nibbles tell
//	towers   4 n bytes: where the links above the lowest level begin, or 2^32-1
//	high     n rows of the upper nibbles of codes, half a byte a dimension, padded to a multiple of 64
//	low      n rows of the lower nibbles
//	lists    for each list where it ends, 4 bytes; the norms of pivots, 4 bytes; the slots, 4 n bytes, list by list; the upper
//	         nibbles of pivots; nothing with a graph or without lists
//	links    n blocks of 2 M slots, 4 bytes each, unused ones 2^32-1; then the towers, M slots a level; nothing without a graph
//	vectors  n rows of 4 bytes a dimension, of length one
//
// [Open] uses the bytes in place, as they are mapped from a file, and reads the header only. Whatever they hold, nothing
// panics; [Index.Verify] checks everything. What is put later stands beside them in memory.
package knn

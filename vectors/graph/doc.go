// Package graph relates the nodes of the index: code, history and knowledge. A [Graph] is nodes and typed edges in one
// flat slice of bytes, which is used in place, without decoding, and has the same bytes for the same parts on every
// machine, in any order of input.
//
// # Model
//
// A [Node] has a type, and the type belongs to one of three domains. An [Edge] is derived from the source of its node,
// or stated by a file; a table defines which types of edges may lead from which domain to which, see [CheckEdge].
// [Build] skips and reports parts that break the rules or have a missing end. Provenances and conflicts are stored, not
// interpreted.
//
// # Changes
//
// A graph never changes and is safe for concurrent use. [Graph.With] returns another one that shares the unchanged
// parts: a writer replaces the nodes of a file in time proportional to their number, while readers continue with their
// graph. The answers, and the bytes, are those of a graph built from the same parts.
//
// # Walks
//
// [Graph.Walk], [Graph.ShortestPath], [Graph.Paths], [Graph.Cycles] and [Graph.Expand] answer in an order that depends
// on ids only. None recurses, each visits a node once (paths, once per path), and their results are bounded. Scores are
// whole numbers in 1/2^30, so that no processor rounds them differently.
//
// # Format
//
// A file of package sections. Nodes are numbered in the order of their ids, arcs in the order of the node that they leave,
// their type, the node that they lead to, and what states them.
//
//	rows         for each node 64 bytes: id, name, path and labels (begin and size in the text, 4 + 4 bytes each), first
//	             and last line (4 + 4), digest, time and hash of the id (8 each)
//	kinds        for each node its type, 1 byte
//	slots        hash table of ids: number of the node + 1, or 0; 4 bytes each, a power of two of them
//	by path      the numbers of the nodes with a path, in the order of the paths, 4 bytes each
//	out          for each node, and once more for the end, its first arc (4 bytes); for each arc the node that it leads
//	             to (4), the bits of its weight (4), its type (1): four sections
//	in           the same from the other end; the arcs of a node in the order of their type and the node that they leave
//	sources      for each stated arc its number and the text of what states it, 12 bytes
//	provenances  56 bytes each, by node and id
//	conflicts    56 bytes each, by id
//	text         the texts, each once; names and paths are often parts of ids
//
// [Open] checks that all numbers are in range, so that no content causes a panic or a read outside the data; a
// malformed file gives [ErrDamaged], and must be rebuilt. Open does not compare the content with its checksums: that is left
// to the file that contains the graph as a section, or to [Graph.Verify].
package graph

// Package graph relates what is in the index: code, what happened, and what is known. A [Graph] is nodes and typed edges
// in one flat slice of bytes, which is used as it is, without decoding, and is the same bytes for the same parts on every
// machine, whatever order they come in.
//
// # Model
//
// A [Node] is of a type, and by it in one of three domains. An [Edge] is derived from what its node is made of, or stated
// by a file; which types of edges may lead from which domain to which is a table, see [CheckEdge]. [Build] leaves
// out what breaks the rules or leads nowhere, and says so. Provenances and conflicts are carried for others to judge.
//
// # Changes
//
// A graph never changes and is safe for concurrent use. [Graph.With] makes another one that shares what is the same: a
// writer replaces a file's nodes in the time that these take, while readers go on with the graph that they have. The
// answers, and the bytes, are those of a graph built of the same parts.
//
// # Walks
//
// [Graph.Walk], [Graph.ShortestPath], [Graph.Paths], [Graph.Cycles] and [Graph.Expand] answer in an order that depends on
// ids only. None recurses, each comes to a node once (paths, once per path), and what is wanted of them is bounded.
// Scores are whole numbers in 1/2^30, so that no processor rounds them differently.
//
// # Format
//
// Little-endian; each section begins at a multiple of 64 bytes. Nodes are numbered in the order of their ids, arcs in
// the order of the node that they leave, their type, the node that they lead to, and what states them.
//
//	header       magic with version, then 4 bytes each: nodes, edges, slots, bytes of text, nodes with a path, stated
//	             edges, provenances, conflicts
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
// [Open] looks at all numbers once, so that whatever the bytes are, nothing panics or leads out of them; a file that was
// not written so gives [ErrDamaged], and is to be built again. Whether the bytes are those that were written is for the
// checksum of the file to say that the graph is a section of, or for [Graph.Verify].
package graph

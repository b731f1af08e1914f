// Package vectors is the index of all that a tree knows: what is found by word, by meaning and by relation. It is made of
// inputs, each a file, a folder of sources or an object, that come to nodes, edges and texts; it is a function of them and
// of nothing else, and lost it is built again, the same byte for byte.
//
// # Parts
//
// [reconcile.dev/reconcile/vectors/graph] holds the nodes and what relates them, [reconcile.dev/reconcile/vectors/lexical]
// finds texts by their words, [reconcile.dev/reconcile/vectors/knn] by the vectors that an embedder
// ([reconcile.dev/reconcile/vectors/embed]) makes of them, and [reconcile.dev/reconcile/vectors/filter] says at once that
// a domain has none of the words. [reconcile.dev/reconcile/vectors/source] and [reconcile.dev/reconcile/vectors/project]
// make inputs.
//
// # Answers
//
// A search ranks texts by words (BM25) and by vectors (cosine), goes on along the edges from the best of both, and joins
// the three rankings by reciprocal rank: each adds 1/(60+rank) (Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion
// outperforms Condorcet and individual Rank Learning Methods", 2009).
//
// # Snapshot and delta
//
// A snapshot is one file of sections that are used in place, see [Open]. When a few inputs change it stays, and a delta
// file beside it holds what they come to now; what the snapshot has of them is passed over. A delta belongs to one
// snapshot, by its digest; when it has become large ([Index.Changed]), a new snapshot is to be built.
//
// Both together have the nodes, edges and facts, and find by words, what a new snapshot of the same inputs would. For that
// a snapshot knows which input has which nodes, and keeps the edges that name a symbol without its file, or what is not
// there: when that comes, goes or moves, they lead to where it is then. Changes for which that is not enough are refused
// with [ErrRebuild]. Vectors may differ in one thing: the built-in embedder goes on with what it learned when the snapshot
// was built.
package vectors

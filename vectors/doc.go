// Package vectors indexes a whole tree for search by word, by meaning and by relation. The index consists of inputs (a
// file, a folder of sources or an object), each of which contributes nodes, edges and texts. It is a pure function of
// the inputs: a lost index is rebuilt with the same bytes.
//
// # Parts
//
// [reconcile.dev/reconcile/vectors/graph] holds the nodes and their edges, [reconcile.dev/reconcile/vectors/lexical]
// finds texts by their words, [reconcile.dev/reconcile/vectors/knn] by the vectors that an embedder
// ([reconcile.dev/reconcile/vectors/embed]) computes, and [reconcile.dev/reconcile/vectors/filter] quickly reports that
// a domain has none of the words. [reconcile.dev/reconcile/vectors/source] and
// [reconcile.dev/reconcile/vectors/project] make inputs.
//
// # Answers
//
// A search ranks texts by words (BM25) and by vectors (cosine), expands the best of both along edges, and fuses the
// three rankings by reciprocal rank: each adds 1/(60+rank) (Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion
// outperforms Condorcet and individual Rank Learning Methods", 2009).
//
// # Snapshot and delta
//
// A snapshot is one file of sections that are used in place, see [Open]. When a few inputs change, the snapshot stays,
// and a delta file next to it has their new content, which replaces theirs in the snapshot. A delta belongs to one
// snapshot, by its digest; when it has become large ([Index.Changed]), build a new snapshot.
//
// Both together have the same nodes, edges and facts, and the same results by words, as a new snapshot of the same
// inputs. For that, a snapshot records which input contributed which nodes, and keeps the unresolved edges, which name
// a symbol without its file or a missing node: when the node appears, disappears or moves, they are resolved again.
// Changes that cannot be applied this way are refused with [ErrRebuild]. Only vectors may differ: the built-in embedder
// keeps the statistics of the snapshot.
package vectors

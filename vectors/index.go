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

import (
	"cmp"
	"runtime"

	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Index answers questions about all that was indexed. It never changes, and is safe for concurrent use; Update makes the
// next one.
type Index struct {
	Stored *Stored

	graph *graph.Graph
	known *filter.Set // the terms of both
	words *lexical.Set
	docs  []graph.Ref // of the texts that are not the snapshot's, by their number behind those
	live  *knn.Bitmap // slots of near that may be found; nil: all
	lacks bool        // it has texts that should have vectors
}

// Changed returns how many texts of the index, or nodes of its graph, have changed since the snapshot, whichever are
// more. If there are many, build a new snapshot.
func (x *Index) Changed() int { return max(len(x.docs), x.graph.Changed()) }

// Graph returns the graph of the index, which has all nodes of the snapshot and of the delta.
func (x *Index) Graph() *graph.Graph { return x.graph }

func (o Options) withDefaults() Options {
	o.Dims = cmp.Or(o.Dims, knn.DefaultDims)
	o.M, o.EfConstruction = cmp.Or(o.M, knn.DefaultM), cmp.Or(o.EfConstruction, knn.DefaultEfConstruction)
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	if o.Forget == nil {
		o.Forget = func() {}
	}
	return o
}

// LacksVectors reports whether the index lacks vectors of some texts, because the embedder was not available when they
// were indexed.
func (x *Index) LacksVectors() bool { return x.Stored.near == nil && !x.Stored.WordsOnly || x.lacks }

// place is where the node of a vector of the snapshot is.
func (x *Index) place(slot uint32) graph.Ref {
	return graph.Ref(x.Stored.slotted[slot])
}

// doc returns the node of a text.
func (x *Index) doc(n int) graph.Ref {
	if base := x.Stored.baseGraph.Nodes(); n >= base {
		return x.docs[n-base]
	}
	return graph.Ref(n)
}

// Efforts returns how many candidates the index keeps in a normal and in a thorough vector search; 0 if it has no
// vectors.
func (x *Index) Efforts() (normal, thorough int) {
	if x.Stored.near == nil {
		return 0, 0
	}
	return x.Stored.ef(x.Stored.near, false), x.Stored.ef(x.Stored.near, true)
}

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
	*Stored

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
func (x *Index) LacksVectors() bool { return x.near == nil && !x.WordsOnly || x.lacks }

// place is where the node of a vector of the snapshot is.
func (x *Index) place(slot uint32) graph.Ref {
	return graph.Ref(x.slotted[slot])
}

// doc returns the node of a text.
func (x *Index) doc(n int) graph.Ref {
	if base := x.baseGraph.Nodes(); n >= base {
		return x.docs[n-base]
	}
	return graph.Ref(n)
}

// Efforts returns how many candidates the index keeps in a normal and in a thorough vector search; 0 if it has no
// vectors.
func (x *Index) Efforts() (normal, thorough int) {
	if x.near == nil {
		return 0, 0
	}
	return x.ef(x.near, false), x.ef(x.near, true)
}

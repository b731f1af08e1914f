package ops

import (
	"context"
	"fmt"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/vectors/answer"
)

// IndexRequest requests an updated index.
type IndexRequest struct {
	Rebuild bool // rebuild it from the files
	Verify  bool // compare it with a rebuilt one
	Stats   bool // return its statistics
}

// IndexResult is the result of an update of the index.
type IndexResult struct {
	Rebuilt               string // why it was rebuilt; "": it was not
	Changed, Gone, Inputs int    // changed or new inputs, removed ones, and all
	Nodes                 int
	Took                  time.Duration
	Verified              *Verified
	Stats                 *answer.Stats
}

// Verified is the result of comparing an index with a rebuilt one.
type Verified struct {
	Compared        string
	Vectors         int     // number of queries for the 10 nearest vectors
	Found, Thorough float64 // recall with the default and with the thorough search
}

// Index updates the index. With Verify, an error says that the index is wrong; the result is valid then, too.
func Index(ctx context.Context, env Env, q IndexRequest) (r IndexResult, err error) {
	defer func() { err = typed(err) }()
	k, err := env.keep(ctx)
	if err != nil {
		return r, err
	}
	defer k.store.Close()
	k.keeper.Retry = true
	bring := k.keeper.Complete
	if q.Rebuild {
		bring = k.keeper.Rebuild
	}
	x, err := bring(ctx, k.tree)
	if err != nil {
		return r, err
	}
	defer x.Close()
	if x.How.Rebuilt != "" {
		indexing.Ignore(k.options, k.keeper)
	}
	r = IndexResult{Rebuilt: x.How.Rebuilt, Changed: x.How.Changed, Gone: x.How.Gone, Inputs: x.How.Inputs,
		Nodes: x.Graph().Nodes(), Took: x.How.Took.Round(time.Millisecond)}
	if q.Verify {
		v, err := k.keeper.Verify(ctx, k.tree, x)
		if err != nil {
			return r, err
		}
		r.Verified = &Verified{v.Compared, v.Recall.Asked, v.Recall.Default, v.Recall.Thorough}
		if !v.Sound {
			return r, fmt.Errorf("the index is not what its files come to: %s; run: reconcile search index --rebuild", v.Compared)
		}
	}
	if q.Stats {
		r.Stats = k.indexed(x).stats()
	}
	return r, nil
}

func (x *indexed) stats() *answer.Stats {
	s, k := x.Stats(), x.kept
	s.Inputs, s.Changed, s.Model, s.Tools = k.How.Inputs, k.Changed(), k.Meta().Model, k.Meta().Tools
	s.M, s.EfConstruction = k.M, k.EfConstruction
	s.EfSearch, s.EfThorough = k.Efforts()
	s.Large, s.Binary, s.Unreadable = k.How.LeftOut.Large, k.How.LeftOut.Binary, k.How.LeftOut.Unreadable
	return &s
}

package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
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
	s.Inputs, s.Changed, s.Model, s.Tools = k.How.Inputs, k.Changed(), k.Stored.Meta().Model, k.Stored.Meta().Tools
	s.M, s.EfConstruction = k.Stored.M, k.Stored.EfConstruction
	s.EfSearch, s.EfThorough = k.Efforts()
	s.Large, s.Binary, s.Unreadable = k.How.LeftOut.Large, k.How.LeftOut.Binary, k.How.LeftOut.Unreadable
	return &s
}

// Operations on the index update it first. They return their result as soon as it is available, with the remaining work
// on a new index: see [Pending].

// indexTree is an open tree with the keeper of its index.
type indexTree struct {
	env     Env
	store   *state.Store
	tree    *state.Tree
	keeper  *index.Keeper
	options indexing.Options
	denied  error // why the endpoint for vectors is not allowed; nil if it is, or there is none
}

// indexed is an updated index.
type indexed struct {
	answer.Index
	kept   *index.Kept
	env    Env
	store  *state.Store
	denied error // as that of indexTree
}

// keep opens the tree, and the keeper of its index. The caller closes the store.
func (e Env) keep(ctx context.Context) (*indexTree, error) {
	e.Tree.Collector.Aim(process.GCBatch)
	e.Tree.NoInputs = true
	s, t, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	k := &indexTree{env: e, store: s, tree: t, options: e.indexing()}
	if k.keeper, k.denied, err = indexing.NewKeeper(ctx, k.options, s, t); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	k.keeper.Long = func() { e.Tree.Collector.Aim(process.GCLong) }
	return k, nil
}

// Pending is the remaining work on a new index after the answer: the index searches by words only, and its vectors are
// missing. nil means no work.
type Pending struct {
	store   *state.Store
	session *indexing.Session
}

// Finish finishes the pending index session: it computes the missing vectors, and closes the store. It may take long,
// and reports to the sink of the operation. It must be called once; with a cancelled context it only closes the index.
func (p *Pending) Finish(ctx context.Context) error {
	if p == nil {
		return nil
	}
	defer p.store.Close()
	return typed(p.session.Finish(ctx))
}

// withIndex updates the index and returns the result of do. do is called again if it read damaged data.
func withIndex[T any](ctx context.Context, e Env, do func(*indexed) (T, error)) (out T, _ *Pending, err error) {
	defer func() { err = typed(err) }()
	k, err := e.keep(ctx)
	if err != nil {
		return out, nil, err
	}
	p := &Pending{store: k.store}
	if p.session, err = indexing.Open(ctx, k.options, k.keeper, k.tree); err != nil {
		return out, nil, errors.Join(err, k.store.Close())
	}
	if out, err = do(k.indexed(p.session.Kept)); errors.Is(err, vectors.ErrDamaged) {
		if err = p.session.Repair(ctx, err); err == nil {
			out, err = do(k.indexed(p.session.Kept))
		}
	}
	if err == nil && !p.session.Complete() {
		return out, p, nil
	}
	p.session.Close()
	return out, nil, errors.Join(err, k.store.Close())
}

func (k *indexTree) indexed(x *index.Kept) *indexed {
	return &indexed{
		Index: answer.Index{Graph: x.Graph(), Stated: k.env.factStore(k.store).States}, kept: x,
		env: k.env, store: k.store, denied: k.denied,
	}
}

// indexing returns the options for the keeper of the index.
func (e Env) indexing() indexing.Options {
	o := indexing.Options{Tree: e.Tree, Warn: e.warnIndex, Note: func(text string) { e.note("%s", text) }}
	if e.Sink != nil {
		o.Progress = func(step string, done, total int) { e.Sink.Count("index: "+step, done, total) }
	}
	return o
}

// warnIndex reports and logs missing parts of the index.
func (e Env) warnIndex(err error) {
	if denied, ok := errors.AsType[*egress.DeniedError](err); ok {
		if !denied.FirstReport() {
			return
		}
		err = denied
	}
	e.warn(err.Error())
	e.logWarning("index", err.Error())
}

// node returns the node that a word names. For an unknown one, the error suggests similar names.
func (x *indexed) node(word string) (graph.Ref, error) {
	if strings.TrimSpace(word) == "" {
		return 0, badRequest("%q is the name of no node; \"reconcile search\" finds what there is by its words", word)
	}
	for _, find := range []func(string) (graph.Ref, bool){x.kept.Resolve, x.kept.AtLine} {
		if r, ok := find(x.env.inTree(word)); ok {
			return r, nil
		}
	}
	near := answer.NearestIDs(word, func(yield func(string) bool) {
		for r := range x.Graph.All() {
			if !yield(x.Graph.ID(r)) {
				return
			}
		}
	}, 3)
	hint := "; \"reconcile search\" finds what there is by its words"
	if len(near) > 0 {
		for i := range near {
			near[i] = render.Line(near[i])
		}
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return 0, fmt.Errorf("%s is not in the index%s", render.Line(word), hint)
}

// inTree converts a file name that is relative to the caller's folder, perhaps with a symbol or a line after a colon,
// to a path in the tree. A word that names no existing file is returned unchanged.
func (e Env) inTree(word string) string {
	file, _, _ := strings.Cut(word, ":")
	if e.Prefix == "" || file == "" || filepath.IsAbs(file) {
		return word
	}
	if _, err := os.Lstat(e.CallerPath(file)); err != nil {
		return word
	}
	below, ok := worktree.Within(".", filepath.Join(e.Prefix, file))
	if !ok {
		return word
	}
	return below + strings.TrimPrefix(word, file)
}

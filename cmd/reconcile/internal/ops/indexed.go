package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
)

// Operations on the index bring it up to date first. They return their result as soon as there is one, with what is left to do
// on a new index: see [Pending].

// keeping is an open tree with what keeps its index.
type keeping struct {
	Env
	store   *state.Store
	tree    *state.Tree
	keeper  *index.Keeper
	options indexing.Options
	denied  error // why the endpoint for vectors may not be asked; nil: it may, or there is none
}

// indexed is an index that is up to date.
type indexed struct {
	*keeping
	answer.Index
	kept *index.Kept
}

// keep opens the tree, and what keeps its index. The caller closes the store.
func (e Env) keep(ctx context.Context) (*keeping, error) {
	process.TuneGC(e.Tree.Getenv, process.GCBatch)
	s, t, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	k := &keeping{Env: e, store: s, tree: t, options: e.indexing()}
	if k.keeper, k.denied, err = indexing.NewKeeper(ctx, k.options, s, t); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	k.keeper.Long = func() { process.TuneGC(e.Tree.Getenv, process.GCDefault) }
	return k, nil
}

// Pending is the work that a new index leaves for after the answer: it answers by words only, and its vectors are missing.
// A nil one is none.
type Pending struct {
	store   *state.Store
	session *indexing.Session
}

// Finish makes the vectors that the index lacks. It takes as long as building takes, and reports to the sink of the operation.
// It must be called once; a canceled context only gives the index up.
func (p *Pending) Finish(ctx context.Context) error {
	if p == nil {
		return nil
	}
	defer p.store.Close()
	return typed(p.session.Finish(ctx))
}

// withIndex brings the index up to date and returns what do makes of it. do is called again where what it read was damaged.
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

func (k *keeping) indexed(x *index.Kept) *indexed {
	return &indexed{k, answer.Index{Graph: x.Graph(), Stated: k.book(k.store).States}, x}
}

// book keeps the facts of an open tree.
func (e Env) book(s *state.Store) *index.FactStore {
	return &index.FactStore{Store: s, Warn: e.warnIndex}
}

// indexing says what keeping the index takes.
func (e Env) indexing() indexing.Options {
	o := indexing.Options{Tree: e.Tree, Warn: e.warnIndex, Note: func(text string) { e.note("%s", text) }}
	if e.Sink != nil {
		o.Progress = func(step string, done, total int) { e.Sink.Count("index: "+step, done, total) }
	}
	return o
}

// warnIndex reports and logs what the index has to do without.
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

// node is the node that a word names. An unknown one is answered with what was probably meant.
func (x *indexed) node(word string) (graph.Ref, error) {
	if strings.TrimSpace(word) == "" {
		return 0, badRequest("%q is the name of no node; \"reconcile search\" finds what there is by its words", word)
	}
	for _, find := range []func(string) (graph.Ref, bool){x.kept.Resolve, x.kept.AtLine} {
		if r, ok := find(x.inTree(word)); ok {
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

// inTree is what the tree calls a file, perhaps with a symbol or a line after a colon, that is named from where the caller
// is. What exists there is meant first; anything else is left as it is.
func (e Env) inTree(word string) string {
	file, _, _ := strings.Cut(word, ":")
	if e.Prefix == "" || file == "" || filepath.IsAbs(file) {
		return word
	}
	if _, err := os.Lstat(e.here(file)); err != nil {
		return word
	}
	below := filepath.Join(e.Prefix, file)
	if !filepath.IsLocal(below) {
		return word
	}
	return filepath.ToSlash(below) + strings.TrimPrefix(word, file)
}

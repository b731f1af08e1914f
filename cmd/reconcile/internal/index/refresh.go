package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Refresh refreshes the kept index: it opens it, and updates it to the tree. If there is no index, or it is unusable or
// much has changed, it builds a new one, see [Kept.Finish].
func (k *Keeper) Refresh(ctx context.Context, tree *state.Tree) (*Kept, error) {
	return k.refresh(ctx, tree, k.buildLexical)
}

// Complete refreshes the kept index as a whole, for callers that need all of it: nothing is left to Finish.
func (k *Keeper) Complete(ctx context.Context, tree *state.Tree) (*Kept, error) {
	k.sweep()
	return k.refresh(ctx, tree, k.whole)
}

// builder builds a new index; why is the reason.
type builder func(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error)

func (k *Keeper) refresh(ctx context.Context, tree *state.Tree, anew builder) (*Kept, error) {
	start := k.Now()
	var m *mapped
	var damage error
	var opened sync.WaitGroup
	opened.Go(func() { m, damage = k.load(tree) }) // in parallel with the scan of the files
	s, err := k.survey(ctx, tree)
	opened.Wait()
	if damage == nil && err == nil {
		err = s.settle(ctx)
	}
	switch {
	case err != nil && damage == nil:
		m.close()
		return nil, err
	case err != nil:
		return nil, err
	case damage != nil:
		return anew(ctx, tree, s, refreshReason(damage))
	}
	how, changed, gone := compareInputs(m.Stored, s)
	x, why, err := k.update(ctx, m.Stored, s, changed, gone)
	if err != nil || why != "" {
		m.close()
	}
	if err != nil {
		return nil, err
	}
	if why != "" {
		return anew(ctx, tree, s, why)
	}
	how.Took = k.Now().Sub(start)
	return &Kept{Index: x, How: how, mapped: m}, nil
}

// Repair repairs an index with damage that showed in use: it surveys the tree, and builds the lexical index again, see
// [Kept.Finish].
func (k *Keeper) Repair(ctx context.Context, tree *state.Tree, damage error) (*Kept, error) {
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	return k.buildLexical(ctx, tree, s, refreshReason(damage))
}

// refreshReason returns the reason of a rebuild.
func refreshReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there was none"
	case errors.Is(err, vectors.ErrOtherModel):
		return "another embedder is to make the vectors"
	}
	return err.Error()
}

// embedderTimeout is how long to wait for the embedder's answer.
const embedderTimeout = 10 * time.Second

// update adds the changes to the index, and missing vectors if they are available, and stores them in the delta; or it
// returns why the index must be rebuilt.
func (k *Keeper) update(ctx context.Context, have *vectors.Stored, s *survey, changed []input, gone []string) (x *vectors.Index, why string, err error) {
	switch {
	case k.Retry && have.Meta().Model == "" && k.embeds(ctx):
		return nil, "it had no vectors", nil
	case have.Meta().Tools != s.tagger.version:
		return nil, "symbols are found by another program", nil
	case len(changed) > len(s.inputs)/4+64:
		return nil, "much has changed", nil
	case len(changed)+len(gone) == 0:
		if x, err = have.Ready(); err != nil {
			return nil, err.Error(), nil
		}
		if lacks := k.Retry && x.Stored.Meta().Model != "" && x.LacksVectors(); !lacks || !k.embeds(ctx) {
			s.files.save()
			return x, "", nil
		}
	}
	parts, err := s.parts(ctx, changed, k.progress)
	if err != nil {
		return nil, "", err
	}
	var saved sync.WaitGroup
	saved.Go(s.files.save)
	defer saved.Wait()
	x, err = have.Update(ctx, parts, gone)
	switch {
	case errors.Is(err, vectors.ErrRebuild) || errors.Is(err, vectors.ErrDamaged):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case x.Changed() > x.Graph().Nodes()/8+4096:
		return nil, "the delta has become large", nil
	}
	if err := k.keep(x); err != nil {
		k.warn(fmt.Errorf("what changed could not be kept, and is read again next time: %w", err))
	}
	return x, "", nil
}

package index

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Rebuild builds the index anew, all of it.
func (k *Keeper) Rebuild(ctx context.Context, tree *state.Tree) (*Kept, error) {
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	return k.whole(ctx, tree, s, "it was asked for")
}

// whole builds an index with all that belongs to it.
func (k *Keeper) whole(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
	k.sweep()
	k.long()
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.left}
	return k.finish(ctx, tree, s, inputs, how)
}

// anew builds an index by words, which answers, and leaves the vectors to Finish.
func (k *Keeper) anew(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
	k.long()
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	o := k.options(tree)
	o.Tools, o.Forget, o.WordsOnly = s.tagger.version, s.aside.forget, true
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return nil, err
	}
	x, err := made.Open(o)
	if err != nil {
		return nil, err
	}
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.left, Took: k.since(s)}
	finish := func(ctx context.Context) (*Kept, error) { return k.finish(ctx, tree, s, inputs, how) }
	return &Kept{Index: x, How: how, Finish: finish}, nil
}

// since is how long ago a survey began.
// sweep removes what builds that were killed left behind; what cannot be removed is told of.
func (k *Keeper) sweep() {
	if err := k.Store.SweepTemp(); err != nil {
		k.warn(err)
	}
}

func (k *Keeper) since(s *survey) time.Duration { return k.Now().Sub(s.began) }

// finish builds the whole index of inputs, keeps and opens it.
func (k *Keeper) finish(ctx context.Context, tree *state.Tree, s *survey, inputs []vectors.Input, how How) (*Kept, error) {
	defer runtime.KeepAlive(s) // the inputs' texts
	o := k.options(tree)
	o.Tools, o.Forget = s.tagger.version, s.aside.forget
	if err := k.write(ctx, inputs, o); err != nil {
		return nil, err
	}
	if err := k.dropDelta(); err != nil {
		return nil, err // it is of another snapshot now, and would be passed over
	}
	kept, err := k.Open(tree)
	if err != nil {
		return nil, err
	}
	how.Took = k.since(s)
	kept.How = how
	return kept, nil
}

// write builds the index of inputs and puts it in place. Vectors are not held in memory meanwhile: they would take most of
// it.
func (k *Keeper) write(ctx context.Context, inputs []vectors.Input, o vectors.Options) error {
	scratch, err := k.Store.Scratch()
	if err != nil {
		return err
	}
	defer scratch.Close()
	o.Scratch = scratch
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return err
	}
	var wrong error
	draft, err := k.Store.Sketch(SnapshotPath, inPieces(func(yield func([]byte) bool) {
		wrong = made.Write(func(b []byte) error {
			if !yield(b) {
				return errStopped
			}
			return nil
		})
	}))
	if err = cmp.Or(err, wrong); err != nil {
		if draft != nil {
			draft.Discard()
		}
		return err
	}
	defer draft.Discard()
	if err := draft.Place(); err != nil {
		return err
	}
	if id, err := k.Store.LookAt(SnapshotPath); err == nil {
		k.noteSound(id) // it is what was just written, by us or by who was faster
	}
	return nil
}

// pieceSize is that of a large page.
const pieceSize = 2 << 20

// inPieces hands out the same bytes in pieces of one size, but for the last. A system that is told to write a large page at
// once keeps it as one, and maps it as one: a walk through the vectors then takes a tenth less, and the first look at them
// a hundredth.
func inPieces(parts iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		piece := make([]byte, 0, pieceSize)
		for part := range parts {
			for len(part) > 0 {
				n := min(len(part), pieceSize-len(piece))
				piece, part = append(piece, part[:n]...), part[n:]
				if len(piece) < pieceSize {
					continue
				}
				if !yield(piece) {
					return
				}
				piece = piece[:0]
			}
		}
		if len(piece) > 0 {
			yield(piece)
		}
	}
}

// errStopped ends a write that somebody else has an error for.
var errStopped = errors.New("the file cannot be written")

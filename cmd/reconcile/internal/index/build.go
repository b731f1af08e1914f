package index

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Rebuild surveys the tree, and builds the whole index again.
func (k *Keeper) Rebuild(ctx context.Context, tree *state.Tree) (*Kept, error) {
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	return k.whole(ctx, tree, s, "it was asked for")
}

// whole builds a complete index.
func (k *Keeper) whole(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
	k.sweep()
	k.long()
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.files.left}
	return k.finish(ctx, tree, s, inputs, how)
}

// buildLexical builds an index without vectors, which can answer queries, and leaves the vectors to Finish.
func (k *Keeper) buildLexical(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
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
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.files.left, Took: k.since(s)}
	finish := func(ctx context.Context) (*Kept, error) { return k.finish(ctx, tree, s, inputs, how) }
	return &Kept{Index: x, How: how, Finish: finish}, nil
}

// sweep removes the files of killed builds; it warns of those that it cannot remove.
func (k *Keeper) sweep() {
	if err := k.Store.SweepTemp(); err != nil {
		k.warn(err)
	}
}

// finish builds the complete index of inputs, stores it and opens it.
func (k *Keeper) finish(ctx context.Context, tree *state.Tree, s *survey, inputs []vectors.Input, how How) (*Kept, error) {
	defer runtime.KeepAlive(s) // the inputs' texts
	o := k.options(tree)
	o.Tools, o.Forget = s.tagger.version, s.aside.forget
	if err := k.write(ctx, inputs, o); err != nil {
		return nil, err
	}
	if err := k.dropDelta(); err != nil {
		return nil, err // it belongs to the old snapshot, and would be ignored
	}
	kept, err := k.Open(tree)
	if err != nil {
		return nil, err
	}
	how.Took = k.since(s)
	kept.How = how
	return kept, nil
}

// write builds the index of inputs and puts it in place. Vectors are kept in a file meanwhile, because they would take most
// of the memory.
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
	draft, err := k.Store.Draft(SnapshotPath, inPieces(func(yield func([]byte) bool) {
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
	if id, err := k.Store.Lstat(SnapshotPath); err == nil {
		k.noteSound(id) // just written, by this process or another one
	}
	return nil
}

// pieceSize is the size of a large page.
const pieceSize = 2 << 20

// inPieces regroups the bytes into pieces of one size, except the last. A large page written at once stays one page, also
// when mapped: a scan of the vectors then takes a tenth less time, and the first access a hundredth of it.
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

// errStopped ends a write whose error was reported elsewhere.
var errStopped = errors.New("the file cannot be written")

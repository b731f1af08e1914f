package index

import (
	"bytes"
	"context"
	"fmt"
	"runtime"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Verified is the result of a verification.
type Verified struct {
	// Sound is set if the index equals a rebuild; Compared describes the comparison and the difference.
	Sound    bool
	Compared string
	Recall   vectors.Recall
}

const askedVectors = 200

// Verify verifies the kept index: it builds one from the same inputs in memory and compares the bytes of the snapshot,
// or, with a delta, the digests of the inputs, and the nodes and edges.
func (k *Keeper) Verify(ctx context.Context, tree *state.Tree, x *Kept) (*Verified, error) {
	if err := x.Index.Verify(); err != nil {
		return &Verified{Compared: err.Error()}, nil
	}
	k.long()
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(s) // the inputs' texts
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	scratch, err := k.Store.Scratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	o := k.options(tree)
	o.Tools, o.Scratch, o.Forget = s.tagger.version, scratch, s.aside.forget
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return nil, err
	}
	v := &Verified{}
	if x.Delta() == nil {
		if v.Sound, err = x.Same(made); err != nil {
			return nil, err
		}
		if v.Sound {
			v.Compared = "the snapshot is that of a rebuild, byte for byte"
		} else {
			v.Compared = "the snapshot is another than that of a rebuild"
		}
	} else {
		fresh, err := made.Open(o)
		if err != nil {
			return nil, err
		}
		a, b := x.Graph(), fresh.Graph()
		v.Sound = x.Stored.Inputs() == fresh.Stored.Inputs() && bytes.Equal(a.AppendTo(nil), b.AppendTo(nil))
		v.Compared = fmt.Sprintf("snapshot and delta have %d nodes and %d edges, a rebuild %d and %d", a.Nodes(), a.Edges(),
			b.Nodes(), b.Edges())
	}
	v.Recall, err = x.Recall(askedVectors)
	return v, err
}

func verifyFound(program, version, dir string) *tagger {
	if version == "" {
		return &tagger{}
	}
	return &tagger{program: program, version: version, dir: dir}
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/outputs"
)

// Outputs keeps what nodes leave behind. Nothing of it is called concurrently, nor, but for Sweep, under the lock of the
// tree.
type Outputs interface {
	// Restore writes missing outputs back. It replaces nothing: the error wraps
	// fs.ErrExist if one of them is there by now.
	Restore(ctx context.Context, r controllers.Restore) error
	// Keep adds to git what is to be kept there of the outputs. It is called when their records are committed.
	Keep(ctx context.Context, t *state.Tree) error
	// Publish brings the remote, if there is one, in step with that, and removes what is to be kept no more. It is called
	// when the records are on the remote.
	Publish(ctx context.Context, t *state.Tree) error
	// Sweep removes what no record of the tree names. It is called under the lock of the tree while nothing runs.
	Sweep(t *state.Tree) error
}

// restoreOutputs writes back the outputs that the decisions ask for, and reports whether there were any: then a turn has
// to follow.
func (s *session) restoreOutputs(ctx context.Context) bool {
	if s.Outputs == nil || len(s.restores) == 0 {
		return false
	}
	in, restored := s.Only.In(s.tree), false
	for _, ref := range sortedRefs(s.restores) {
		var rest []controllers.Restore
		for _, r := range s.restores[ref] {
			switch {
			case ctx.Err() != nil:
				return false
			case !in(r.Owner, r.Node):
				rest = append(rest, r)
			default:
				s.restoreRun(ctx, r)
				restored = true
			}
		}
		set(s.restores, ref, rest, len(rest) > 0) // the next decision says what is left
	}
	return restored
}

func (s *session) restoreRun(ctx context.Context, r controllers.Restore) {
	err := s.Outputs.Restore(ctx, r)
	for _, o := range r.Outputs {
		s.paths = append(s.paths, o.Path)
	}
	s.touch(r.Owner)
	if err == nil || errors.Is(err, fs.ErrExist) || ctx.Err() != nil {
		return
	}
	s.Store.MarkLost(r.Run.Key)
	s.unrestored = s.unrestored || !errors.Is(err, outputs.ErrMissing)
	s.warn(fmt.Sprintf("the outputs of %s of %s cannot be restored from %s: %v; if a node needs them, %s runs again",
		r.Node, r.Owner, r.From(), err, r.Node))
}

// keepOutputs adds to git the outputs that are to be kept there. What fails is tried again by the next run: nothing depends
// on it.
func (s *session) keepOutputs(ctx context.Context) {
	if s.Outputs != nil {
		s.noteUnkept(ctx, s.Outputs.Keep(ctx, s.tree))
	}
}

// publishOutputs follows, once the records are on the remote.
func (s *session) publishOutputs(ctx context.Context) {
	if s.Outputs == nil || s.unkept != nil {
		return
	}
	ctx, cancel := s.network(ctx)
	defer cancel()
	s.noteUnkept(ctx, s.Outputs.Publish(ctx, s.tree))
}

func (s *session) noteUnkept(ctx context.Context, err error) {
	if s.unkept = err; err == nil || ctx.Err() != nil || err.Error() == s.unkeptTold {
		return
	}
	s.unkeptTold = err.Error()
	s.warn(fmt.Sprintf("outputs are not kept in git: %v; the next run tries again", err))
}

// restoring reports whether outputs are to be restored.
func (s *session) restoring() bool { return s.Outputs != nil && len(s.restores) > 0 }

// outputsOf are the paths that a finished effect was to leave behind: a look at them is due.
func (s *session) outputsOf(key string) []string {
	e := s.mine[key]
	return e.Task.OutputPaths()
}

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

// Outputs keeps what nodes leave behind. Nothing of it is called concurrently, nor under the lock of the tree.
type Outputs interface {
	// Restore writes missing outputs back. It replaces nothing: the error wraps
	// fs.ErrExist if one of them is there by now.
	Restore(ctx context.Context, r controllers.Restore) error
	// Sweep removes what no record of the tree names. It is called under the lock of the tree while nothing runs.
	Sweep(t *state.Tree) error
}

// restoreOutputs writes back the outputs that the decisions ask for, and reports whether there were any: then a turn has
// to follow.
func (s *session) restoreOutputs(ctx context.Context) bool {
	if s.Outputs == nil || len(s.restores) == 0 {
		return false
	}
	for _, ref := range sortedRefs(s.restores) {
		for _, r := range s.restores[ref] {
			if ctx.Err() != nil {
				return false
			}
			s.restoreRun(ctx, r)
		}
	}
	clear(s.restores) // the next decision says what is left
	return true
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
	s.Store.Lose(r.Run.Key)
	s.unrestored = s.unrestored || !errors.Is(err, outputs.ErrMissing)
	s.warn(fmt.Sprintf("the outputs of %s of %s cannot be restored from the local cache: %v; if a node needs them, %s runs again",
		r.Node, r.Owner, err, r.Node))
}

// restoring reports whether outputs are to be restored.
func (s *session) restoring() bool { return s.Outputs != nil && len(s.restores) > 0 }

// outputsOf are the paths that a finished effect was to leave behind: a look at them is due.
func (s *session) outputsOf(key string) []string {
	e := s.mine[key]
	return e.Task.OutputPaths()
}

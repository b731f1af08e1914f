package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/outputs"
)

// Outputs keeps the declared outputs of nodes. Its methods are not called concurrently, and only Sweep is called under
// the lock of the tree.
type Outputs interface {
	// Restore writes missing outputs back. It does not replace files: the error wraps fs.ErrExist if one of them
	// exists.
	Restore(ctx context.Context, r settle.Restore) error
	// Keep adds outputs to git if their specs ask for it. It is called when their records are committed.
	Keep(ctx context.Context, t *state.Tree) error
	// Publish pushes these to the remote, if there is one, and removes outputs that their specs no longer keep. It is
	// called when the records are on the remote.
	Publish(ctx context.Context, t *state.Tree) error
	// Sweep removes outputs that no record of the tree names. It is called under the lock of the tree while nothing
	// runs.
	Sweep(t *state.Tree) error
}

// restoreOutputs writes back the outputs that the decisions ask for. It reports whether there were any: then another
// turn must follow.
func (s *run) restoreOutputs(ctx context.Context) bool {
	if s.loop.Outputs == nil || len(s.restores) == 0 {
		return false
	}
	in, restored := s.loop.Only.In(s.tree), false
	for _, ref := range sortedRefs(s.restores) {
		var rest []settle.Restore
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
		set(s.restores, ref, rest, len(rest) > 0) // the next decision covers the rest
	}
	return restored
}

func (s *run) restoreRun(ctx context.Context, r settle.Restore) {
	err := s.loop.Outputs.Restore(ctx, r)
	for _, o := range r.Outputs {
		s.paths = append(s.paths, o.Path)
	}
	s.touch(r.Owner)
	if err == nil || errors.Is(err, fs.ErrExist) || ctx.Err() != nil {
		return
	}
	s.loop.Store.MarkLost(r.Run.Key)
	s.unrestored = s.unrestored || !errors.Is(err, outputs.ErrMissing)
	s.warn(fmt.Sprintf("the outputs of %s of %s cannot be restored from %s: %v; if a node needs them, %s runs again",
		r.Node, r.Owner, r.From(), err, r.Node))
}

// keepOutputs adds outputs to git if their specs ask for it. The next run retries after an error: nothing depends on
// it.
func (s *run) keepOutputs(ctx context.Context) {
	if s.loop.Outputs != nil {
		s.noteUnkept(ctx, s.loop.Outputs.Keep(ctx, s.tree))
	}
}

// publishOutputs publishes the kept outputs once the records are on the remote.
func (s *run) publishOutputs(ctx context.Context) {
	if s.loop.Outputs == nil || s.unkept != nil {
		return
	}
	ctx, cancel := s.network(ctx)
	defer cancel()
	s.noteUnkept(ctx, s.loop.Outputs.Publish(ctx, s.tree))
}

func (s *run) noteUnkept(ctx context.Context, err error) {
	if s.unkept = err; err == nil || ctx.Err() != nil || err.Error() == s.unkeptWarned {
		return
	}
	s.unkeptWarned = err.Error()
	s.warn(fmt.Sprintf("outputs are not kept in git: %v; the next run tries again", err))
}

// restoring reports whether any outputs are missing that must be restored.
func (s *run) restoring() bool { return s.loop.Outputs != nil && len(s.restores) > 0 }

// outputsOf are the declared output paths of a finished effect, which must be scanned.
func (s *run) outputsOf(key string) []string {
	e := s.mine[key]
	return e.OutputPaths()
}

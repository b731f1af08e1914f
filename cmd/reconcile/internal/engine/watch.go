package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// watch runs the loop with hints from the file system: from the tree's own folders, and from the inputs of nodes. A
// signal is a watcher's normal end.
func (r *engineRun) watch(ctx context.Context, l *loop.Loop) (loop.Result, error) {
	s := r.settings
	watcher, err := watch.New(r.o.Tree.Dir, watch.Options{
		Paths: watchedPaths(s, nil), Debounce: s.Watch.Debounce.Std(), Rescan: s.Watch.Rescan.Std(), Poll: s.Watch.Poll.Std(),
		Warn: func(err error) { r.o.Sink.Warn(err.Error()) },
	})
	if err != nil {
		return loop.Result{}, err
	}
	hints := make(chan loop.Hint)
	over := make(chan struct{})
	defer close(over)
	var written <-chan struct{}
	if r.mirror != nil {
		tell, wrote, stop := r.mirror.Follow(ctx)
		defer stop()
		written = wrote
		followTree(l, tell)
	}
	tell, stop := indexing.Follow(ctx, indexing.FollowOptions{Tree: r.o.Tree, Store: r.store, Settings: s, Warn: r.o.Sink.Warn, Index: r.o.WarnIndex})
	defer stop()
	followTree(l, tell)
	go forward(watcher.Hints(), written, hints, over)
	r.o.Sink.Note("watching " + r.o.Tree.Dir + "; Ctrl-C ends it")
	followInputs(l, watcher.Follow)
	reportProblems(l, r.o.Sink.Warn)
	res, err := l.Watch(ctx, hints)
	if res.Tree == nil && ctx.Err() != nil && interrupted(err) {
		// The signal came before the tree was read: that is a normal end too, and the result has the present state.
		res.Tree, err = r.store.Load(context.WithoutCancel(ctx))
	}
	return res, errors.Join(err, watcher.Close())
}

// followInputs passes the paths that the globs of the tree's nodes can match to a watcher, after each turn that changed
// them.
func followInputs(l *loop.Loop, follow func(paths []string)) {
	observe := l.Observe
	var last []string
	l.Observe = func(reports []settle.Report, t *state.Tree) {
		observe(reports, t)
		if reports != nil || t == nil {
			return
		}
		if paths := watchedPaths(t.Settings(), t); !slices.Equal(paths, last) {
			last = paths
			follow(paths)
		}
	}
}

// followTree passes the tree to update after each turn that changed it.
func followTree(l *loop.Loop, update func(*state.Tree)) {
	observe := l.Observe
	var last *state.Tree
	l.Observe = func(reports []settle.Report, t *state.Tree) {
		observe(reports, t)
		if reports == nil && t != nil && t != last {
			last = t
			update(t)
		}
	}
}

// watchedPaths are the folders of specs and state, the settings, and the base folders of input globs.
func watchedPaths(s *schemas.SettingsSpec, t *state.Tree) []string {
	paths := []string{schemas.SettingsPath, s.Folders.Specs, s.Folders.State}
	if t == nil {
		return paths
	}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if len(e.Inputs) == 0 {
			continue
		}
		for _, n := range schemas.SpecAs[*schemas.DAGSpec](e.Object).Nodes {
			for _, glob := range n.Inputs {
				paths = append(paths, watchedPath(glob))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// watchedPath is the file that a glob names, or the topmost folder in which it can match.
func watchedPath(glob string) string {
	if !strings.ContainsAny(glob, `*?[{\`) {
		return glob
	}
	base, _ := doublestar.SplitPattern(glob)
	return base
}

// forward passes hints on until the watcher is closed or over is closed, after which the receiver no longer reads.
// written has a token when files were written outside of the loop.
func forward(from <-chan watch.Hint, written <-chan struct{}, to chan<- loop.Hint, over <-chan struct{}) {
	defer close(to)
	for {
		var hint loop.Hint
		select {
		case h, ok := <-from:
			if !ok {
				return
			}
			hint = loop.Hint{Paths: h.Paths, Full: h.Full}
		case <-written:
			hint.Written = true
		case <-over:
			return
		}
		select {
		case to <- hint:
		case <-over:
			return
		}
	}
}

// transient reports whether a watcher retries after an error of git or of the remote: a rebase, for example, or user
// changes that conflict with fetched commits.
func (r *engineRun) transient(err error) bool {
	var conflict *gitrepo.Conflict
	if r.request.Watch && errors.As(err, &conflict) {
		r.warnOnce(err)
		return true
	}
	if r.share != nil {
		r.share.Outage(err)
	}
	return share.Transient(err)
}

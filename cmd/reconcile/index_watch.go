package main

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/state"
)

// indexFollower keeps the index in step with a tree that is watched, beside the loop. It begins when there is an index:
// who never searches pays nothing.
type indexFollower struct {
	*wiring
	tree    *state.Tree    // as it was last handed on; nil before
	watcher *watch.Watcher // of all that is indexed; nil as long as there is no index
	due     <-chan time.Time
	warn    func(error) // what is wrong with the index keeps nobody from working
	lacking
}

// lacking is when to try again to make vectors that an index lacks.
type lacking struct {
	wait  time.Duration    // since the last try; 0: nothing is lacking
	again <-chan time.Time // when to try again; nil: at the next refresh
}

// Bounds of how long to wait until vectors that an index lacks are tried again.
const (
	lackingFirst = time.Minute
	lackingMost  = time.Hour
)

// tried notes what came of a try: the next one is after twice the time.
func (l *lacking) tried(lacks bool) {
	if !lacks {
		*l = lacking{}
		return
	}
	l.wait = min(max(2*l.wait, lackingFirst), lackingMost)
	l.again = time.After(l.wait)
}

// indexPatience is how long the end of a watcher waits for a refresh that is under way. What it leaves is the old index
// or the new.
const indexPatience = 2 * time.Second

// followIndex begins to follow the trees that tell hands on. stop ends it.
func (w *wiring) followIndex(ctx context.Context) (tell func(*state.Tree), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trees, over := make(chan *state.Tree, 1), make(chan struct{})
	warn := once(func(err error) {
		if ctx.Err() == nil { // what breaks because it is the end is no matter for a warning
			w.warn("index: " + err.Error())
		}
	})
	f := &indexFollower{wiring: w, warn: warn}
	go func() {
		defer close(over)
		f.run(ctx, trees)
	}()
	stop = func() {
		cancel()
		select {
		case <-over:
		case <-time.After(indexPatience):
		}
	}
	return newest(trees), stop
}

// newest hands values to a channel with room for one, of which only the newest counts.
func newest[T any](to chan T) func(T) {
	return func(v T) {
		select {
		case <-to:
		default:
		}
		to <- v
	}
}

func (f *indexFollower) run(ctx context.Context, trees <-chan *state.Tree) {
	defer func() {
		if f.watcher != nil {
			_ = f.watcher.Close() // it has nothing to say
		}
	}()
	for {
		var hints <-chan watch.Hint
		if f.watcher != nil {
			hints = f.watcher.Hints()
		}
		select {
		case <-ctx.Done():
			return
		case f.tree = <-trees:
			f.later()
		case h := <-hints:
			if h.Full || slices.ContainsFunc(h.Paths, isIndexed) {
				f.later()
			}
		case <-f.again:
			f.again = nil
			f.later()
		case <-f.due:
			f.due = nil
			if err := f.refresh(ctx); err != nil {
				f.warn(err)
			}
		}
	}
}

// isIndexed reports whether a file is not the index itself.
func isIndexed(p string) bool { return p != index.SnapshotPath && p != index.DeltaPath }

// later has the index refreshed after a while, in which more may change.
func (f *indexFollower) later() {
	if f.due == nil && f.tree != nil {
		f.due = time.After(f.settings.Watch.CommitDelay.Std())
	}
}

// refresh brings an index that is there up to date.
func (f *indexFollower) refresh(ctx context.Context) error {
	k, err := f.keeper(ctx, f.store, f.tree)
	if err != nil || !k.Exists() {
		return err
	}
	k.Warn, k.Progress, k.Retry = f.warn, nil, f.again == nil
	if f.watcher == nil {
		if err := f.watchFiles(k); err != nil {
			return err
		}
	}
	x, err := k.Complete(ctx, f.tree)
	if err != nil {
		return err
	}
	if k.Retry {
		f.tried(x.Lacks())
	}
	x.Close()
	return nil
}

// watchFiles begins to watch all that is indexed.
func (f *indexFollower) watchFiles(k *index.Keeper) (err error) {
	s := f.settings.Watch
	f.watcher, err = watch.New(f.global.dir, watch.Options{
		Paths: []string{"."}, Skip: k.Skips(f.tree), Debounce: s.Debounce.Std(), Rescan: s.Rescan.Std(), Poll: s.Poll.Std(),
		Warn: f.warn,
	})
	return err
}

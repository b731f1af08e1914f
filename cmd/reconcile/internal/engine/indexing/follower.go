package indexing

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// FollowOptions say what Follow works with.
type FollowOptions struct {
	Tree     tree.Config
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Warn     func(text string) // is called with what is wrong with the index, each once
	Index    func(error)       // is Options.Warn of the keepers
}

// follower keeps the index in step with a tree that is watched, beside the loop. It begins when there is an index: who never
// searches pays nothing.
type follower struct {
	o       FollowOptions
	tree    *state.Tree    // as it was last handed on; nil before
	watcher *watch.Watcher // of all that is indexed; nil as long as there is no index
	due     <-chan time.Time
	warn    func(error) // what is wrong with the index keeps nobody from working
	retry   retry
}

// retry is when to try again to make vectors that an index lacks.
type retry struct {
	wait  time.Duration    // since the last try; 0: nothing is lacking
	again <-chan time.Time // when to try again; nil: at the next refresh
}

// Bounds of how long to wait until vectors that an index lacks are tried again.
const (
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// tried notes what came of a try: the next one is after twice the time.
func (r *retry) tried(lacks bool) {
	if !lacks {
		*r = retry{}
		return
	}
	r.wait = min(max(2*r.wait, firstRetry), lastRetry)
	r.again = time.After(r.wait)
}

// stopFor is how long the end of a watcher waits for a refresh that is under way. What it leaves is the old index
// or the new.
const stopFor = 2 * time.Second

// Follow begins to follow the trees that tell hands on. stop ends it.
func Follow(ctx context.Context, o FollowOptions) (tell func(*state.Tree), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trees, over := make(chan *state.Tree, 1), make(chan struct{})
	warn := Once(func(err error) {
		if ctx.Err() == nil { // what breaks because it is the end is no matter for a warning
			o.Warn("index: " + err.Error())
		}
	})
	f := &follower{o: o, warn: warn}
	go func() {
		defer close(over)
		f.run(ctx, trees)
	}()
	stop = func() {
		cancel()
		select {
		case <-over:
		case <-time.After(stopFor):
		}
	}
	return loop.Latest(trees), stop
}

func (f *follower) run(ctx context.Context, trees <-chan *state.Tree) {
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
		case <-f.retry.again:
			f.retry.again = nil
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
func (f *follower) later() {
	if f.due == nil && f.tree != nil {
		f.due = time.After(f.o.Settings.Watch.CommitDelay.Std())
	}
}

// refresh brings an index that is there up to date.
func (f *follower) refresh(ctx context.Context) error {
	k, _, err := NewKeeper(ctx, Options{Tree: f.o.Tree, Warn: f.o.Index}, f.o.Store, f.tree)
	if err != nil || !k.Exists() {
		return err
	}
	k.Warn, k.Progress, k.Retry = f.warn, nil, f.retry.again == nil
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
		f.retry.tried(x.LacksVectors())
	}
	x.Close()
	return nil
}

// watchFiles begins to watch all that is indexed.
func (f *follower) watchFiles(k *index.Keeper) (err error) {
	s := f.o.Settings.Watch
	f.watcher, err = watch.New(f.o.Tree.Dir, watch.Options{
		Paths: []string{"."}, Skip: k.Skips(f.tree), Debounce: s.Debounce.Std(), Rescan: s.Rescan.Std(), Poll: s.Poll.Std(),
		Warn: f.warn,
	})
	return err
}

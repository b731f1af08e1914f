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

// FollowOptions configure Follow.
type FollowOptions struct {
	Tree     tree.Config
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Warn     func(text string) // called with each problem of the index once
	Index    func(error)       // Options.Warn of the keepers
}

// follower keeps the index of a watched tree up to date, concurrently with the loop. It starts once an index exists, so
// users who never search pay nothing.
type follower struct {
	o       FollowOptions
	tree    *state.Tree    // the latest tree; nil before the first
	watcher *watch.Watcher // of all indexed files; nil while there is no index
	due     <-chan time.Time
	warn    func(error) // reports problems of the index, which do not stop the watcher
	retry   retry
}

// retry schedules retries for vectors that an index lacks.
type retry struct {
	wait  time.Duration    // since the last try; 0: no vectors are missing
	again <-chan time.Time // time of the next try; nil: at the next refresh
}

// Bounds of the interval between retries.
const (
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// noteTry records the result of a try and doubles the interval if vectors are still missing.
func (r *retry) noteTry(lacks bool) {
	if !lacks {
		*r = retry{}
		return
	}
	r.wait = min(max(2*r.wait, firstRetry), lastRetry)
	r.again = time.After(r.wait)
}

// stopTimeout is how long the end of a watcher waits for a running refresh. An aborted refresh leaves the old index or
// the new one.
const stopTimeout = 2 * time.Second

// Follow follows the trees that update passes on. stop ends it.
func Follow(ctx context.Context, o FollowOptions) (update func(*state.Tree), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trees, over := make(chan *state.Tree, 1), make(chan struct{})
	warn := warnOnce(func(err error) {
		if ctx.Err() == nil { // errors caused by the end itself are not reported
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
		case <-time.After(stopTimeout):
		}
	}
	return loop.Latest(trees), stop
}

func (f *follower) run(ctx context.Context, trees <-chan *state.Tree) {
	defer func() {
		if f.watcher != nil {
			_ = f.watcher.Close() // it has no error to report
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
			f.scheduleRefresh()
		case h := <-hints:
			if h.Full || slices.ContainsFunc(h.Paths, isIndexed) {
				f.scheduleRefresh()
			}
		case <-f.retry.again:
			f.retry.again = nil
			f.scheduleRefresh()
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

// scheduleRefresh schedules a refresh after a delay, in which further changes are batched.
func (f *follower) scheduleRefresh() {
	if f.due == nil && f.tree != nil {
		f.due = time.After(f.o.Settings.Watch.CommitDelay.Std())
	}
}

// refresh updates an existing index.
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
		f.retry.noteTry(x.LacksVectors())
	}
	x.Close()
	return nil
}

// watchFiles starts watching all indexed files.
func (f *follower) watchFiles(k *index.Keeper) (err error) {
	s := f.o.Settings.Watch
	f.watcher, err = watch.New(f.o.Tree.Dir, watch.Options{
		Paths: []string{"."}, Skip: k.Skips(f.tree), Debounce: s.Debounce.Std(), Rescan: s.Rescan.Std(), Poll: s.Poll.Std(),
		Warn: f.warn,
	})
	return err
}

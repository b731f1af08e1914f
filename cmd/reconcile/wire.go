package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// reconcileTree wires store, loop, runner, git and event log together, and runs the loop.
func reconcileTree(ctx context.Context, a *app, o loopOptions) (outcome, error) {
	if in := a.runHere(); in != nil {
		return outcome{}, fmt.Errorf("this is part of the run %s of the same tree; "+
			"a run inside a run would wait for itself: take the call out of the node, or point -C at another tree", in.Key)
	}
	store, err := a.open()
	if err != nil {
		return outcome{}, err
	}
	defer store.Close()
	sum, fresh := store.Fresh()
	fresh = fresh && !o.watch && o.only == nil && (sum.Commit || !o.commit) && !sum.Mirror
	if fresh && (o.look || !o.push && !sum.Push) {
		return outcome{Unchanged: true, Counts: sum.Counts, Exit: sum.Exit, Waits: sum.Lines}, nil
	}
	if !o.watch {
		process.TuneGC(a.getenv, process.GCLatency)
	}
	w := &wiring{app: a, store: store, settings: store.Settings(), options: o}
	if o.look {
		return w.look(ctx)
	}
	if !o.watch {
		store.Watch()
	}
	if err := w.openRepo(); err != nil {
		return outcome{}, err
	}
	if err := w.openShare(ctx); err != nil {
		return outcome{}, err
	}
	if fresh {
		same, err := w.inStep(ctx)
		if err != nil || same {
			return outcome{Unchanged: true, Counts: sum.Counts, Exit: sum.Exit, Waits: sum.Lines, Pushed: same}, err
		}
	}
	return w.run(ctx)
}

// wiring is one run of the loop with all that it is connected to.
type wiring struct {
	*app
	store    *state.Store
	settings *schemas.SettingsSpec
	options  loopOptions
	repo     *committer      // nil when nothing is to be committed
	share    *share          // nil when nothing is to be pushed
	mirror   *mirroring      // nil when nothing is to be mirrored
	unkept   map[string]bool // runs whose outputs cannot be kept in git, by key
	warned   string          // what warnOnce said last
}

func (w *wiring) run(ctx context.Context) (outcome, error) {
	doing := w.options.progress.Count
	memory := w.newRemembering(doing)
	defer memory.files.Close() //nolint:errcheck // it was only read
	perform, err := w.runner(ctx, memory)
	if err != nil {
		return outcome{}, err
	}
	news := w.newNews()
	defer news.close()
	l := &loop.Loop{
		Store: w.store, Perform: perform, Now: w.now, CPUs: runtime.NumCPU(), Linger: true,
		Warn: w.warn, Record: news.record, Observe: news.observe, Memory: memory, Outputs: outputKeeper{w},
		Doing: doing, Movable: w.movable, Only: w.options.only,
	}
	if w.repo != nil {
		l.Commit = w.repo.commit
		l.Passing = w.passing
	}
	if w.share != nil {
		l.Share, l.Perform = w.share, w.share.guard(perform)
		defer w.share.close(ctx)
	}
	w.mirror = w.openMirror()
	if w.mirror != nil && !w.options.watch {
		w.mirror.in(ctx)
	}
	var r loop.Result
	if w.options.watch {
		r, err = w.watch(ctx, l)
	} else if r, err = l.Once(ctx); err == nil && !r.Interrupted && w.mirror != nil {
		r.Commit = cmp.Or(w.mirror.once(ctx, r), r.Commit)
	}
	if r.Interrupted && err == nil && !w.options.watch {
		err = context.Canceled
	}
	out := outcome{Tree: r.Tree, Only: l.Only, Ran: r.Ran, Wrote: r.Wrote, Commit: w.share.known(r.Commit), Held: r.Held, Busy: r.Busy,
		Pushed: r.Pushed, Sent: r.Sent, Took: r.Took}
	if r.Tree != nil {
		out.Exit = int(l.Only.Verdict(r.Tree))
		for _, w := range l.Only.Waits(r.Tree) {
			out.Waits = append(out.Waits, w.String())
		}
	}
	return out, err
}

// look decides once, for a command that only wants to know how things stand.
func (w *wiring) look(ctx context.Context) (outcome, error) {
	doing := w.options.progress.Count
	memory := w.newRemembering(doing)
	defer memory.files.Close() //nolint:errcheck // it was only read
	news := w.newNews()
	defer news.close()
	l := &loop.Loop{Store: w.store, Now: w.now, Warn: w.warn, Record: news.record, Memory: memory,
		Doing: doing}
	r, err := l.Look(ctx)
	out := outcome{Tree: r.Tree, Wrote: r.Wrote, Held: r.Held, Busy: r.Busy}
	if r.Tree != nil {
		out.Exit = int(controllers.Verdict(r.Tree))
	}
	return out, err
}

// passing reports an error of git or of the remote that a watcher outlives: a rebase, for example, and changes of the
// user that are in the way of what others pushed.
func (w *wiring) passing(err error) bool {
	var conflict *gitrepo.Conflict
	if w.options.watch && errors.As(err, &conflict) {
		w.warnOnce(err)
		return true
	}
	if w.share != nil && passes(err) {
		w.share.reach.endured(err)
	}
	return passes(err)
}

// warnOnce tells of an error that lasts, the first time.
func (w *wiring) warnOnce(err error) {
	if text := err.Error(); text != w.warned {
		w.warned = text
		w.warn(text)
	}
}

// warn tells of what is wrong while the run goes on. It is no progress: --quiet does not silence it.
func (w *wiring) warn(text string) {
	if w.global.quiet {
		fmt.Fprintln(w.stderr, clean(text))
		return
	}
	w.options.progress.Note(text)
}

func (w *wiring) runner(ctx context.Context, memory *remembering) (*runner.Runner, error) {
	ctx = context.WithoutCancel(ctx) // what has begun to start is started; then it is ended in order
	s := w.settings
	slots := s.Limits.ConcurrentTasks
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	return runner.New(runner.Options{
		Root: w.global.dir, Now: w.now, Grace: s.Runs.Grace.Std(), Slots: slots,
		OutputLimit: s.Runs.OutputLimit, TailLimit: s.Runs.TailLimit, ResultLimit: s.Runs.ResultLimit,
		OutputCache: outputLimit(s),
		Redact:      secrets.RedactBytes,
		Asked:       func(key string) bool { return askedBy(w.store.Root(), s.Folders.Specs, key) },
		Recall:      func(task controllers.Recall) string { return memory.recall(ctx, task) }, Learn: memory.learn,
	})
}

// watch runs the loop with hints from the file system: from the tree's own folders, and from where the inputs of nodes
// are. A watcher's end by a signal is its normal end.
func (w *wiring) watch(ctx context.Context, l *loop.Loop) (loop.Result, error) {
	s := w.settings
	watcher, err := watch.New(w.global.dir, watch.Options{
		Paths: watchedPaths(s, nil), Debounce: s.Watch.Debounce.Std(), Rescan: s.Watch.Rescan.Std(), Poll: s.Watch.Poll.Std(),
		Warn: func(err error) { w.warn(err.Error()) },
	})
	if err != nil {
		return loop.Result{}, err
	}
	hints := make(chan loop.Hint)
	over := make(chan struct{})
	defer close(over)
	var written <-chan struct{}
	if w.mirror != nil {
		tell, wrote, stop := w.mirror.follow(ctx)
		defer stop()
		written = wrote
		followTree(l, tell)
	}
	tell, stop := w.followIndex(ctx)
	defer stop()
	followTree(l, tell)
	go forward(watcher.Hints(), written, hints, over)
	w.options.progress.Note("watching " + w.global.dir + "; Ctrl-C ends it")
	followInputs(l, watcher.Follow)
	tellProblems(l, w.warn)
	r, err := l.Watch(ctx, hints)
	if r.Tree == nil && ctx.Err() != nil && exitCode(err) == exitInterrupted {
		// It was told to end before it had read the tree: that is a normal end too, and tells how things stand.
		r.Tree, err = w.store.Load(context.WithoutCancel(ctx))
	}
	return r, errors.Join(err, watcher.Close())
}

// followInputs tells a watcher where the globs of the tree's nodes can match, after each turn that changed it.
func followInputs(l *loop.Loop, follow func(paths []string)) {
	observe := l.Observe
	var last []string
	l.Observe = func(reports []controllers.Report, t *state.Tree) {
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

// followTree hands on the tree after each turn that changed it.
func followTree(l *loop.Loop, tell func(*state.Tree)) {
	observe := l.Observe
	var last *state.Tree
	l.Observe = func(reports []controllers.Report, t *state.Tree) {
		observe(reports, t)
		if reports == nil && t != nil && t != last {
			last = t
			tell(t)
		}
	}
}

// watchedPaths are the folders of specs and state, the settings, and the folders above which no input can be.
func watchedPaths(s *schemas.SettingsSpec, t *state.Tree) []string {
	paths := []string{schemas.SettingsPath, s.Folders.Specs, s.Folders.State}
	if t == nil {
		return paths
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
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

// watchedPath is the file that a glob names, or the folder in and below which it can match.
func watchedPath(glob string) string {
	if !strings.ContainsAny(glob, `*?[{\`) {
		return glob
	}
	base, _ := doublestar.SplitPattern(glob)
	return base
}

// forward hands hints on until the watcher is closed, or nobody takes them any more, which is when over is closed. written
// has a token when records were written beside the loop.
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

// clock returns the clock of the records. RECONCILE_NOW (RFC 3339) stops it, so that runs can be compared byte by byte;
// what waits for a time then waits for ever.
func clock(stopped string) (func() time.Time, error) {
	if stopped == "" {
		return time.Now, nil
	}
	at, err := time.Parse(time.RFC3339, stopped)
	if err != nil {
		return nil, fmt.Errorf("RECONCILE_NOW=%q is not RFC 3339, for example 2026-02-27T10:00:00Z", stopped)
	}
	return func() time.Time { return at }, nil
}

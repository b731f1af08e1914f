// Package watch reports, soon, where files of a tree may have changed.
//
// Watching is a hint and scanning is the truth: the receiver of a [Hint] reads the files and trusts only them. So a hint
// may name an unchanged file, or all files (Full), but no change stays without a hint for longer than the rescan interval.
// A full hint comes at the start, after a lost event (the kernel's queue overflowed), for new and removed folders (files
// may already have been inside), on errors, and at each rescan.
//
// Changes are collected until they pause for the debounce; a continuing burst is reported after five times that. If the
// system's limit of watches is reached, the tree is polled instead.
package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/fsnotify/fsnotify"
)

// Options configure a watcher; the zero value is valid and watches nothing.
type Options struct {
	// Paths are the files and folders to watch, as slash paths below the root, each with everything below it. They may be
	// missing (yet).
	Paths []string
	// Skip reports whether everything below a folder, a slash path below the root, is irrelevant: it is not watched. Default:
	// no folder is skipped.
	Skip func(dir string) bool
	// Debounce is the quiet time after a change before it is reported. Default 200ms.
	Debounce time.Duration
	// Rescan is the time between full hints, plus or minus a tenth. Default 5m.
	Rescan time.Duration
	// Poll is the polling interval without file notification. Default 2s.
	Poll time.Duration
	// Warn is called with limitations of the watching and advice, once for each. It is called from New and from the watcher's
	// goroutine, and must not block. Default: no-op.
	Warn func(error)

	open func() (notifier, error) // for tests
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Debounce, 200 * time.Millisecond}, {&o.Rescan, 5 * time.Minute}, {&o.Poll, 2 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	if o.Skip == nil {
		o.Skip = func(string) bool { return false }
	}
	if o.open == nil {
		o.open = openNotifier
	}
	return o
}

// Watcher watches one tree. Its methods are safe for concurrent use.
type Watcher struct {
	root   string
	o      Options
	hints  chan Hint
	follow chan []string
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once

	// The watcher's goroutine owns the rest.
	scope   scope
	gather  coalescer
	notify  notifier // nil while polling
	watched map[string]bool
	warned  map[string]bool
	seen    uint64 // fingerprint of the last poll
	rescans uint64
}

// New starts to watch the tree at root. When it returns, the watches are in place, and the first hint, a full one, is
// ready. An error means that root itself is unusable; missing watches are not an error (see Options.Warn).
func New(root string, o Options) (*Watcher, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", root, err)
	}
	o = o.withDefaults()
	w := &Watcher{
		root: abs, o: o, hints: make(chan Hint), follow: make(chan []string),
		stop: make(chan struct{}), done: make(chan struct{}),
		scope: newScope(o.Paths), gather: coalescer{quiet: o.Debounce},
		watched: map[string]bool{}, warned: map[string]bool{},
	}
	if w.notify, err = o.open(); err != nil {
		w.notify = nil
		w.degrade(err)
	} else {
		w.coverAll()
	}
	w.gather.everything(time.Now(), true)
	go w.run()
	return w, nil
}

// Hints returns the channel of the watcher's hints, which are coalesced changes. An unreceived hint keeps growing; none
// is lost. Close closes the channel.
func (w *Watcher) Hints() <-chan Hint { return w.hints }

// Follow makes the watcher follow other paths, in place of Options.Paths; equal paths cost nothing. A change is
// followed by a full hint.
func (w *Watcher) Follow(paths []string) {
	select {
	case w.follow <- paths:
	case <-w.done:
	}
}

// Close stops the watcher, waits until it is done, and closes the channel of hints. It may be called again.
func (w *Watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.done
	return nil
}

func (w *Watcher) run() {
	defer close(w.done)
	defer close(w.hints)
	defer w.closeNotifier()
	timers := newTimers(w.nextRescan(), w.o.Poll)
	defer timers.stop()
	for w.step(timers) {
	}
}

// timers are the watcher's three timers: the due hint, the next rescan, the next poll.
type timers struct{ due, rescan, poll *time.Timer }

func newTimers(rescan, poll time.Duration) timers {
	return timers{due: time.NewTimer(time.Hour), rescan: time.NewTimer(rescan), poll: time.NewTimer(poll)}
}

func (t timers) stop() {
	for _, timer := range []*time.Timer{t.due, t.rescan, t.poll} {
		timer.Stop()
	}
}

// step waits for one event and handles it; false ends the watching.
func (w *Watcher) step(t timers) bool {
	out, wake := w.ready(t)
	events, errs, poll := w.sources(t)
	select {
	case <-w.stop:
		return false
	case out <- w.gather.hint:
		w.gather.taken()
	case <-wake:
	case e, ok := <-events:
		w.event(e, ok)
	case err := <-errs:
		w.failed(err)
	case <-t.rescan.C:
		t.rescan.Reset(w.nextRescan())
		w.coverAll()
		w.gather.everything(time.Now(), true)
	case <-poll:
		w.poll()
		t.poll.Reset(w.o.Poll)
	case paths := <-w.follow:
		w.refollow(newScope(paths))
	}
	return true
}

// ready returns the channel for the collected hint if it is due, and otherwise the timer that fires when it is.
func (w *Watcher) ready(t timers) (out chan<- Hint, wake <-chan time.Time) {
	at, pending := w.gather.due()
	if !pending {
		return nil, nil
	}
	if wait := time.Until(at); wait > 0 {
		t.due.Reset(wait)
		return nil, t.due.C
	}
	return w.hints, nil
}

// sources returns the sources of changes: the notifier, or the poll timer.
func (w *Watcher) sources(t timers) (<-chan fsnotify.Event, <-chan error, <-chan time.Time) {
	if w.notify == nil {
		return nil, nil, t.poll.C
	}
	return w.notify.Events(), w.notify.Errors(), nil
}

// event handles one event; !ok means that there will be no more.
func (w *Watcher) event(e fsnotify.Event, ok bool) {
	if !ok {
		w.degrade(errors.New("the notifier ended"))
		return
	}
	rel, inside := w.rel(e.Name)
	if !inside || e.Op == fsnotify.Chmod || !w.scope.wants(rel) {
		return
	}
	now := time.Now()
	if e.Op&(fsnotify.Remove|fsnotify.Rename|fsnotify.Create) != 0 && w.watched[rel] {
		w.uncover(rel) // also for a replaced folder: the watch is on the old one
		w.gather.everything(now, false)
	}
	if e.Has(fsnotify.Create) && isFolder(e.Name) {
		w.try(w.cover(rel))
		w.gather.everything(now, false)
	}
	w.gather.path(now, rel)
}

// failed handles an error of the notifier: events may have been lost, and with them new folders.
func (w *Watcher) failed(err error) {
	if err == nil {
		w.degrade(errors.New("the notifier ended"))
		return
	}
	if !errors.Is(err, fsnotify.ErrEventOverflow) && !w.warned[err.Error()] {
		w.warned[err.Error()] = true
		w.o.Warn(fmt.Errorf("file notification: %w; looking at everything again", err))
	}
	w.coverAll()
	w.gather.everything(time.Now(), false)
}

func (w *Watcher) try(err error) {
	if err != nil {
		w.degrade(err)
	}
}

// degrade stops notification permanently and polls from now on.
func (w *Watcher) degrade(err error) {
	w.closeNotifier()
	w.watched = map[string]bool{}
	w.seen, _ = w.fingerprint()
	w.gather.everything(time.Now(), false)
	w.o.Warn(adviseWatches(err))
}

func (w *Watcher) refollow(s scope) {
	if slices.Equal(s, w.scope) {
		return
	}
	w.scope = s
	for dir := range w.watched {
		if !s.wants(dir) {
			w.uncover(dir)
		}
	}
	w.coverAll()
	if w.notify == nil {
		w.seen, _ = w.fingerprint()
	}
	w.gather.everything(time.Now(), true)
}

func (w *Watcher) nextRescan() time.Duration {
	w.rescans++
	return spread(w.o.Rescan, fmt.Sprintf("%s %d", w.root, w.rescans))
}

// spread changes d by up to a tenth, so that the watchers of one machine do not scan at the same time. It is a pure
// function of its arguments.
func spread(d time.Duration, seed string) time.Duration {
	fifth := uint64(d / 5)
	if fifth == 0 {
		return d
	}
	return d - d/10 + time.Duration(xxhash.Sum64String(seed)%fifth)
}

// closing returns an error once the watcher is closing, to stop a walk.
func (w *Watcher) closing() error {
	select {
	case <-w.stop:
		return errClosing
	default:
		return nil
	}
}

// Hint names paths that may have changed.
type Hint struct {
	// Paths are slash paths below the root, sorted, each once. The receiver owns the slice.
	Paths []string
	// Full means that any path may have changed; Paths is then empty.
	Full bool
}

// Limits of one hint.
const (
	burstFactor = 5    // a continuing burst is reported after this many times the debounce
	maxPaths    = 1024 // with more paths than this, a full scan is as cheap
)

// coalescer collects changes until they pause. It has no clock: the caller passes the time.
type coalescer struct {
	quiet time.Duration

	hint        Hint
	urgent      bool // report without waiting
	first, last time.Time
}

// path records a change of path at the time now.
func (c *coalescer) path(now time.Time, path string) {
	c.touch(now)
	if c.hint.Full {
		return
	}
	i, known := slices.BinarySearch(c.hint.Paths, path)
	switch {
	case known:
	case len(c.hint.Paths) == maxPaths:
		c.hint = Hint{Full: true}
	default:
		c.hint.Paths = slices.Insert(c.hint.Paths, i, path)
	}
}

// everything records that any path may have changed at the time now. An urgent record is reported at once.
func (c *coalescer) everything(now time.Time, urgent bool) {
	c.touch(now)
	c.hint = Hint{Full: true}
	c.urgent = c.urgent || urgent
}

func (c *coalescer) touch(now time.Time) {
	if !c.pending() {
		c.first = now
	}
	c.last = now
}

func (c *coalescer) pending() bool { return c.hint.Full || len(c.hint.Paths) > 0 }

// due returns the time to report the hint; ok is false without a hint.
func (c *coalescer) due() (at time.Time, ok bool) {
	if !c.pending() {
		return time.Time{}, false
	}
	if c.urgent {
		return c.first, true
	}
	at = c.last.Add(c.quiet)
	if latest := c.first.Add(burstFactor * c.quiet); latest.Before(at) {
		at = latest
	}
	return at, true
}

// taken clears the hint, which now belongs to the receiver.
func (c *coalescer) taken() { *c = coalescer{quiet: c.quiet} }

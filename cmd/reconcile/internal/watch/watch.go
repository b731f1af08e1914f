// Package watch tells, soon, where in a tree files may have changed.
//
// Watching is a hint and scanning is the truth: whoever receives a [Hint] looks at the files and believes only them.
// So a hint may name a file that did not change, or say "anything may have changed" (Full), but no change goes without
// a hint for longer than the rescan interval. Full comes at the start, after a lost event (the kernel's queue ran
// over), for new and vanished folders (files may have been inside already), on errors, and at each rescan.
//
// Changes are gathered until they have been quiet for the debounce; a burst that does not end is reported after five
// times that. Where the system gives out no more watches, the tree is polled instead.
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

// Options tune a watcher; the zero value watches nothing but works.
type Options struct {
	// Paths are the files and folders to watch, as slash paths below the root, each with all that is below it. They
	// need not exist (yet).
	Paths []string
	// Skip says of a folder, a slash path below the root, that nothing below it matters: it is not watched. Default: none
	// is skipped.
	Skip func(dir string) bool
	// Debounce is the quiet time after a change before it is reported. Default 200ms.
	Debounce time.Duration
	// Rescan is the time between full hints, give or take a tenth. Default 5m.
	Rescan time.Duration
	// Poll is the time between looks where file notification is not to be had. Default 2s.
	Poll time.Duration
	// Warn is told what limits the watching and what to do about it, each matter once. It is called from New and from
	// the watcher's goroutine, and must not block. Default: nobody is told.
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

// Watcher watches one tree. Its methods may be called from any goroutine.
type Watcher struct {
	root   string
	o      Options
	hints  chan Hint
	follow chan []string
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once

	// The rest belongs to the watcher's goroutine.
	scope   scope
	gather  coalescer
	notify  notifier // nil while polling
	watched map[string]bool
	warned  map[string]bool
	seen    uint64 // fingerprint of the last poll
	rescans uint64
}

// New starts to watch the tree at root. When it returns, the watches are in place, and the first hint, a full one, is
// ready. An error means that root itself cannot be used; a lack of watches is not one (see Options.Warn).
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

// Hints delivers what changed, coalesced. A hint that is not received goes on growing; none is lost. The channel is
// closed by Close.
func (w *Watcher) Hints() <-chan Hint { return w.hints }

// Follow replaces Options.Paths; equal paths cost nothing. After a real change a full hint follows.
func (w *Watcher) Follow(paths []string) {
	select {
	case w.follow <- paths:
	case <-w.done:
	}
}

// Close ends the watching, waits until it has ended, and closes the channel of hints. It may be called again.
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

// timers are the watcher's three clocks: the hint that is due, the next rescan, the next poll.
type timers struct{ due, rescan, poll *time.Timer }

func newTimers(rescan, poll time.Duration) timers {
	return timers{due: time.NewTimer(time.Hour), rescan: time.NewTimer(rescan), poll: time.NewTimer(poll)}
}

func (t timers) stop() {
	for _, timer := range []*time.Timer{t.due, t.rescan, t.poll} {
		timer.Stop()
	}
}

// step waits for one thing to happen and deals with it; false ends the watching.
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
		w.look()
		t.poll.Reset(w.o.Poll)
	case paths := <-w.follow:
		w.refollow(newScope(paths))
	}
	return true
}

// ready returns the channel for the gathered hint if it is due, and else the clock that says when it will be.
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

// sources returns where changes come from: the notifier, or the clock of the polls.
func (w *Watcher) sources(t timers) (<-chan fsnotify.Event, <-chan error, <-chan time.Time) {
	if w.notify == nil {
		return nil, nil, t.poll.C
	}
	return w.notify.Events(), w.notify.Errors(), nil
}

// event deals with one event; !ok means that there will be no more.
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
		w.uncover(rel) // also of a folder that was replaced: the watch is on the old one
		w.gather.everything(now, false)
	}
	if e.Has(fsnotify.Create) && isFolder(e.Name) {
		w.try(w.cover(rel))
		w.gather.everything(now, false)
	}
	w.gather.path(now, rel)
}

// failed deals with an error of the notifier: events may have been lost, and with them new folders.
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

// coverAll puts a watch on every folder that matters. On those that have one already it does nothing.
func (w *Watcher) coverAll() {
	if w.notify != nil {
		w.try(w.cover("."))
	}
}

func (w *Watcher) try(err error) {
	if err != nil {
		w.degrade(err)
	}
}

// degrade gives up notification for good and polls from now on.
func (w *Watcher) degrade(err error) {
	w.closeNotifier()
	w.watched = map[string]bool{}
	w.seen, _ = w.fingerprint()
	w.gather.everything(time.Now(), false)
	w.o.Warn(advise(err))
}

// look polls once.
func (w *Watcher) look() {
	if now, ok := w.fingerprint(); ok && now != w.seen {
		w.seen = now
		w.gather.everything(time.Now(), false)
	}
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

func (w *Watcher) closeNotifier() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing to be done about it: the descriptor is gone either way
		w.notify = nil
	}
}

func (w *Watcher) nextRescan() time.Duration {
	w.rescans++
	return spread(w.o.Rescan, fmt.Sprintf("%s %d", w.root, w.rescans))
}

// spread moves d by up to a tenth either way, so that the watchers of one machine do not all scan at once. It is a pure
// function: the same seed always gives the same time.
func spread(d time.Duration, seed string) time.Duration {
	fifth := uint64(d / 5)
	if fifth == 0 {
		return d
	}
	return d - d/10 + time.Duration(xxhash.Sum64String(seed)%fifth)
}

package lock

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/state/durable"
)

// Options adjust the protocol. The zero value is the protocol that other programs agree on; only tests need more than
// Agent.
type Options struct {
	Agent   string        // the name of the holder, for people; "reconcile" if empty
	Log     *slog.Logger  // receives every acquire and release, at debug level; may be nil
	Stale   time.Duration // age at which a lock is abandoned; 30 s
	Backoff time.Duration // first wait for a lock that is held; 200 ms
	Longest time.Duration // longest wait; 5 s
	Tries   int           // the number of tries; 5

	Dir    string // the folder of guards, below root; ".reconcile/locks"
	TmpDir string // the folder of Update's temporary files, below root; ".reconcile/tmp"

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error     // returns early, with its error, when the context ends
	After func(time.Duration, func()) (stop func() bool) // calls a function later, in a new goroutine
	Rand  func() float64                                 // in [0, 1), for jitter
}

// The agreed protocol, and the values that follow from it.
const (
	defaultStale   = 30 * time.Second
	defaultBackoff = 200 * time.Millisecond
	defaultLongest = 5 * time.Second
	defaultTries   = 5
)

func (o Options) withDefaults() Options {
	o.Agent = cmp.Or(o.Agent, "reconcile")
	o.Stale = cmp.Or(o.Stale, defaultStale)
	o.Backoff = cmp.Or(o.Backoff, defaultBackoff)
	o.Longest = cmp.Or(o.Longest, defaultLongest)
	o.Tries = cmp.Or(o.Tries, defaultTries)
	o.Dir = cmp.Or(o.Dir, ".reconcile/locks")
	o.TmpDir = cmp.Or(o.TmpDir, ".reconcile/tmp")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.After == nil {
		o.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	return o
}

// hold returns how long a lock may be held and its file still be written: half of Stale.
func (o Options) hold() time.Duration { return o.Stale / 2 }

// settle returns the wait after taking a stale lock before it is trusted: 100 ms for the agreed 30 s.
func (o Options) settle() time.Duration { return o.Stale / 300 }

// wait returns the pause after the i-th try, from 0, without jitter.
func (o Options) wait(i int) time.Duration {
	d := o.Backoff
	for ; i > 0 && d < o.Longest; i-- {
		d *= 2
	}
	return min(d, o.Longest)
}

func (o Options) jittered(i int) time.Duration {
	return time.Duration(float64(o.wait(i)) * (0.75 + o.Rand()/2))
}

// budget returns the maximum duration of all tries together: 6.2 s.
func (o Options) budget() time.Duration {
	var sum time.Duration
	for i := range o.Tries {
		sum += o.wait(i)
	}
	return sum
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Lock is a held lock. Except for Working, one goroutine at a time may use it.
type Lock struct {
	disk  disk
	guard guard
	own   file // L
	path  string
	o     Options
	body  []byte
	seen  *[sha256.Size]byte // of F at the last Read; nil before

	acquired time.Time // for the log; zero without one

	worked atomic.Bool // since the last renewal
	doing  atomic.Pointer[string]
	mu     sync.Mutex  // guards the following fields, between the holder and the renewal
	since  time.Time   // the timestamp in L, with its monotonic reading
	idle   int         // renewals since the last Working
	stop   func() bool // the next renewal; nil: none
	done   bool
}

// Acquire acquires the lock of the file at path below root, and waits while another holder has it. The file need not exist;
// its folder is made if missing. Locks are held for milliseconds, never across a command or the network. A lock that is held
// for longer, for much work or on a slow machine, is renewed as long as its holder calls [Lock.Working]. A caller that takes
// several locks takes them in order of their paths.
//
// The error is [ErrBusy], as a [*BusyError], if the lock is not available in time. Goroutines also exclude each other.
func Acquire(ctx context.Context, root *os.Root, path string, o Options) (*Lock, error) {
	o = o.withDefaults()
	start := o.began()
	l, err := acquireBelow(ctx, root, path, o)
	if err != nil {
		o.log("lock not acquired", path, start, err)
		return nil, durable.Advise(fmt.Errorf("lock %s: %w", path, err))
	}
	o.log("lock acquired", path, start, nil)
	l.acquired = o.began()
	l.keep()
	return l, nil
}

func acquireBelow(ctx context.Context, root *os.Root, path string, o Options) (*Lock, error) {
	for tries := 0; ; tries++ {
		d, err := openDisk(root, path, o)
		if err != nil {
			return nil, err
		}
		l, err := acquire(ctx, d, path, o)
		if err == nil {
			return l, nil
		}
		d.close()
		if tries < 10 && errors.Is(err, fs.ErrNotExist) {
			continue // an empty folder was removed concurrently
		}
		return nil, err
	}
}

// Read reads the content of the locked file from disk, and keeps its digest, so that Check verifies that it is unchanged.
// The content is nil if the file does not exist.
func (l *Lock) Read() ([]byte, error) {
	data, err := l.disk.read()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	l.seen = digest(data)
	return data, nil
}

// digest distinguishes a missing file (nil) from an empty one.
func digest(data []byte) *[sha256.Size]byte {
	var sum [sha256.Size]byte
	if data != nil {
		sum = sha256.Sum256(data)
	}
	return &sum
}

// Check returns nil if the decisions under the lock may be written now. It must be the last call before the write. The
// error is [ErrStolen] if the lock is not ours any more, if it was held for so long that another process may be about to
// take it, or if the file changed since Read.
func (l *Lock) Check() error {
	// The lock comes last: a process that took it may have written just after the check of the file.
	if err := l.unchanged(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.young()
}

// young returns nil while the lock is ours and younger than the limit.
func (l *Lock) young() error {
	if err := l.mine(); err != nil {
		return err
	}
	if held := elapsed(l.since, l.o.Now()); held >= l.o.hold() {
		return fmt.Errorf("%w: %s was locked for %v, more than %v", ErrStolen, l.path, held, l.o.hold())
	}
	return nil
}

func (l *Lock) unchanged() error {
	if l.seen == nil {
		return nil
	}
	data, err := l.disk.read()
	if err != nil {
		return fmt.Errorf("read %s: %w", l.path, err)
	}
	if *digest(data) != *l.seen {
		return fmt.Errorf("%w: %s was changed by somebody else", ErrStolen, l.path)
	}
	return nil
}

// elapsed returns the longer duration of the wall clock and the monotonic clock: the former can be set, the latter stops
// while the machine sleeps.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// mine returns nil while L is the file that this lock created.
func (l *Lock) mine() error {
	switch ok, err := l.disk.same(l.own, lockFile); {
	case err != nil:
		return fmt.Errorf("look at the lock of %s: %w", l.path, err)
	case !ok:
		return fmt.Errorf("%w: %s.lock is not the one that was made here", ErrStolen, l.path)
	}
	return nil
}

// Release releases the lock. It removes no lock but its own; [ErrStolen] says that another process had taken it, so the
// data that was written under it may be lost. A second call does nothing.
func (l *Lock) Release() error {
	if !l.end() {
		return nil
	}
	err := l.release()
	l.o.log("lock released", l.path, l.acquired, err)
	return err
}

func (l *Lock) release() error {
	defer l.disk.close()
	defer l.guard.unlock()
	defer l.own.close()
	if err := l.mine(); err != nil {
		return err
	}
	ours, err := reap(l.disk, l.own)
	switch {
	case err != nil:
		return durable.Advise(fmt.Errorf("release the lock of %s: %w", l.path, err))
	case !ours:
		return fmt.Errorf("%w: %s.lock was replaced", ErrStolen, l.path)
	case elapsed(l.since, l.o.Now()) >= l.o.hold():
		// Another process may have judged the lock as abandoned and be about to remove it. Until then, no reconcile
		// process creates a new one.
		return l.o.Sleep(context.Background(), l.o.settle())
	}
	return nil
}

// began returns the start time of a logged operation; zero without a log.
func (o Options) began() time.Time {
	if o.Log == nil || !o.Log.Enabled(context.Background(), slog.LevelDebug) {
		return time.Time{}
	}
	return o.Now()
}

// log logs an operation on the lock of a file and its duration since the time that began returned: agentx-spec 12.3.
func (o Options) log(what, path string, since time.Time, err error) {
	if since.IsZero() {
		return
	}
	took := float64(o.Now().Sub(since).Microseconds()) / 1000
	attrs := []slog.Attr{slog.String("filePath", path), slog.String("agent", o.Agent), slog.Float64("durationMs", took)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	o.Log.LogAttrs(context.Background(), slog.LevelDebug, what, attrs...)
}

// Update changes the file at path under its lock: mutate gets the content, nil if the file does not exist, and returns
// the new one. Equal content, or nil, is not written. The new content is durable before the lock is released.
//
// mutate runs again, on the current content, whenever the lock was lost; so it must be a pure function that finds its
// own earlier additions (an upsert). An error of mutate leaves the file unchanged and is returned. nil is returned only
// after a write and a release without interference.
func Update(ctx context.Context, root *os.Root, path string, o Options, mutate func(old []byte) ([]byte, error)) error {
	acquire := func() (*Lock, error) { return Acquire(ctx, root, path, o) }
	return update(o.withDefaults().Tries, acquire, mutate)
}

func update(tries int, acquire func() (*Lock, error), mutate func([]byte) ([]byte, error)) error {
	var stolen error
	for range tries {
		l, err := acquire()
		if err != nil {
			return err
		}
		err = errors.Join(l.change(mutate), l.Release())
		if !errors.Is(err, ErrStolen) {
			return err
		}
		stolen = err
	}
	return fmt.Errorf("%w: gave up after %d tries; other programs do not keep to the lock", stolen, tries)
}

func (l *Lock) change(mutate func([]byte) ([]byte, error)) error {
	old, err := l.Read()
	if err != nil {
		return err
	}
	data, err := mutate(old)
	if err != nil || data == nil || old != nil && bytes.Equal(old, data) {
		return err
	}
	s, err := l.disk.stage(data)
	if err != nil {
		return err
	}
	defer s.Discard()
	if err := l.Check(); err != nil {
		return err
	}
	return s.Commit()
}

// acquire runs the protocol on a disk; without an error, the lock owns the disk.
func acquire(ctx context.Context, d disk, path string, o Options) (*Lock, error) {
	g, err := d.lockGuard(ctx, o.budget())
	if errors.Is(err, ErrBusy) {
		return nil, busyGuard(d, path, o)
	}
	if err != nil {
		return nil, err
	}
	a := &lockAttempt{disk: d, guard: g, o: o, path: path}
	l, err := a.run(ctx)
	if err != nil {
		_ = a.drop(newFile)
		g.unlock()
		return nil, err
	}
	return l, nil
}

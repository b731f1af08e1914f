package lock

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/state/durable"
)

// Options adjust the protocol. The zero value is what other programs agree to; only tests need more than Agent.
type Options struct {
	Agent   string        // who locks, for people to read; "reconcile" if empty
	Log     *slog.Logger  // told of every acquire and release, at debug level; may be nil
	Stale   time.Duration // age at which a lock is abandoned; 30 s
	Backoff time.Duration // first wait for a lock that is held; 200 ms
	Longest time.Duration // longest wait; 5 s
	Tries   int           // how often to try; 5

	Dir    string // where guards lie, below root; ".reconcile/locks"
	TmpDir string // where Update writes new contents, below root; ".reconcile/tmp"

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error     // returns early, with its error, when the context ends
	After func(time.Duration, func()) (stop func() bool) // calls a function later, in a goroutine of its own
	Rand  func() float64                                 // in [0, 1), for jitter
}

// The mandated protocol, and what follows from it.
const (
	defaultStale   = 30 * time.Second
	defaultBackoff = 200 * time.Millisecond
	defaultLongest = 5 * time.Second
	defaultTries   = 5
)

func (o Options) withDefaults() Options {
	setDefault(&o.Agent, "reconcile")
	setDefault(&o.Stale, defaultStale)
	setDefault(&o.Backoff, defaultBackoff)
	setDefault(&o.Longest, defaultLongest)
	setDefault(&o.Tries, defaultTries)
	setDefault(&o.Dir, ".reconcile/locks")
	setDefault(&o.TmpDir, ".reconcile/tmp")
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

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// hold is how long a lock may be held and its file still be written: half of what others wait.
func (o Options) hold() time.Duration { return o.Stale / 2 }

// settle is how long to wait after taking a stale lock before trusting it: 100 ms for the mandated 30 s.
func (o Options) settle() time.Duration { return o.Stale / 300 }

// wait is the pause after the i-th try, from 0, without jitter.
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

// budget is how long all tries together may take: 6.2 s.
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

// Lock is a lock that is held. But for Working it is for one goroutine.
type Lock struct {
	disk  disk
	guard guard
	own   file // L
	path  string
	o     Options
	body  []byte
	seen  *[sha256.Size]byte // of F when Read last looked; nil before

	acquired time.Time // when, for the log; zero when there is none

	worked atomic.Bool // since the last renewal
	mu     sync.Mutex  // guards what follows, between the holder and the renewal
	since  time.Time   // the timestamp in L, with its monotonic reading
	idle   int         // renewals since the last sign of the holder
	stop   func() bool // the next renewal; nil: none
	done   bool
}

// Acquire takes the lock of the file at path below root, which need not exist; its folder is made when missing. Locks
// are held for milliseconds, never across a command or the network. One that is held for longer, since there is much to
// do or little time to do it in, is renewed for as long as its holder says that it is [Lock.Working].
// Who takes several takes them in order of their paths.
//
// The error is [ErrBusy], as a [*BusyError], when the lock could not be had in time. Goroutines exclude each other too.
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
			continue // an empty folder was removed under our feet
		}
		return nil, err
	}
}

// Read returns the content of the locked file, nil if there is none, and has Check make sure that it stays so.
func (l *Lock) Read() ([]byte, error) {
	data, err := l.disk.read()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	l.seen = digest(data)
	return data, nil
}

// digest tells a missing file (nil) from an empty one.
func digest(data []byte) *[sha256.Size]byte {
	var sum [sha256.Size]byte
	if data != nil {
		sum = sha256.Sum256(data)
	}
	return &sum
}

// Check tells whether what was decided under the lock may be written now. It must be the last thing before writing.
// The error is [ErrStolen] if the lock is not ours any more, if it was held for so long that somebody may be about to
// take it, or if the file changed since Read.
func (l *Lock) Check() error {
	// The lock last: who took it may have written right after we looked at the file.
	if err := l.unchanged(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.young()
}

// young is nil while the lock is ours and younger than it may be held.
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

// elapsed is the longer of what the wall clock and the monotonic clock say: the one is set, the other stands still while the
// machine sleeps.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// mine is nil while L is the file that we made.
func (l *Lock) mine() error {
	switch ok, err := l.disk.same(l.own, lockFile); {
	case err != nil:
		return fmt.Errorf("look at the lock of %s: %w", l.path, err)
	case !ok:
		return fmt.Errorf("%w: %s.lock is not the one that was made here", ErrStolen, l.path)
	}
	return nil
}

// Release gives the lock up. It removes no lock but its own; [ErrStolen] says that somebody else had taken it, so what
// was written under it may be lost. A second call does nothing.
func (l *Lock) Release() error {
	if !l.end() {
		return nil
	}
	err := l.release()
	l.o.log("lock released", l.path, l.acquired, err)
	return err
}

// end ends the renewal; it is false when that was done before.
func (l *Lock) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return false
	}
	l.done = true
	if l.stop != nil {
		l.stop()
	}
	return true
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
		// Somebody may have judged it abandoned and be about to remove it. Until then, none of us makes a new one.
		return l.o.Sleep(context.Background(), l.o.settle())
	}
	return nil
}

// guardName derives a file name from a path: readable, and different for different paths.
func guardName(p string) string {
	name := strings.NewReplacer("%", "%25", "+", "%2B", "/", "+").Replace(p)
	if len(name) > 150 {
		name = fmt.Sprintf("%s-%x", path.Base(p)[:min(50, len(path.Base(p)))], sha256.Sum256([]byte(p)))
	}
	return name + ".guard"
}

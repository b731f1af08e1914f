package lock

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/state/durable"
)

// A held lock is renewed in the background while its holder makes progress, so that its age does not depend on the load
// of the machine. The lock of a holder that hangs ages as that of any program; a stopped process does not renew it at
// all.

// renewals is the number of renewals without a call of Working: for 60 s of the agreed 30 s.
const renewals = 12

// every returns the time between two renewals: three fit into the time that a lock may be held.
func (o Options) every() time.Duration { return o.hold() / 3 }

// Working notes that the holder of the lock has worked, so that the lock is renewed, and at what, in one or two words of ASCII for those
// who wait. A holder of a lock for longer than a minute calls it regularly; it is cheap, and safe for concurrent use.
func (l *Lock) Working(at string) {
	l.worked.Store(true)
	if was := l.doing.Load(); was == nil || *was != at {
		l.doing.Store(&at)
	}
}

// keep starts to renew the lock, until it is released.
func (l *Lock) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = l.o.After(l.o.every(), l.renew)
}

// renew renews the lock, unless its holder did not call Working for too long, and schedules the next renewal. A lost lock
// stays unchanged: [Lock.Check] reports it.
func (l *Lock) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.idle++
	if l.worked.Swap(false) {
		l.idle = 0
	}
	if l.idle <= renewals && l.touch() != nil {
		return
	}
	l.stop = l.o.After(l.o.every(), l.renew)
}

// touch shows other programs that the lock is in use, and restarts its age. It writes through the descriptor that created
// the file, so that it cannot reach another process's lock.
func (l *Lock) touch() error {
	if err := l.young(); err != nil {
		return err
	}
	now := l.o.Now()
	at := valueOffset(l.body, stampKey)
	copy(l.body[at:], stamp(now))
	if doing := l.doing.Load(); doing != nil {
		copy(l.body[valueOffset(l.body, doingKey):], padded(*doing))
	}
	if err := l.own.writeAt(l.body[at:], int64(at)); err != nil {
		return durable.Advise(fmt.Errorf("renew the lock of %s: %w", l.path, err))
	}
	if err := l.mine(); err != nil {
		return err
	}
	l.since = now
	return nil
}

// end ends the renewal; it returns false if it was ended before.
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

package lock

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/state/durable"
)

// A lock that is held is renewed in the background for as long as its holder gets on, so that its age does not depend
// on how busy the machine is. A holder that hangs gives no sign, and its lock ages as that of any program; one that is
// stopped does not even renew.

// renewals is how often a lock is renewed without a sign of its holder: for 60 s of the mandated 30 s.
const renewals = 12

// every is the time between two renewals: three fit into the time that a lock may be held.
func (o Options) every() time.Duration { return o.hold() / 3 }

// Working is a sign that the holder gets on. Whoever holds a lock for longer than a minute gives one now and then; it
// costs next to nothing. It may be called from any goroutine.
func (l *Lock) Working() { l.worked.Store(true) }

// keep begins to renew the lock, until it is released.
func (l *Lock) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = l.o.After(l.o.every(), l.renew)
}

// renew renews the lock, unless its holder gave no sign for too long, and comes back later. A lock that was lost stays
// as it is: [Lock.Check] tells.
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

// touch tells others that the lock is in use, and starts its age again. The file is written through the descriptor
// that made it, so it cannot reach a lock of somebody else.
func (l *Lock) touch() error {
	if err := l.young(); err != nil {
		return err
	}
	now := l.o.Now()
	at := timestampOffset(l.body)
	if err := l.own.writeAt([]byte(stamp(now)), int64(at)); err != nil {
		return durable.Advise(fmt.Errorf("renew the lock of %s: %w", l.path, err))
	}
	if err := l.mine(); err != nil {
		return err
	}
	l.since = now
	return nil
}

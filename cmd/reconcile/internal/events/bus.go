package events

import (
	"sync"
	"sync/atomic"
)

// Policy says what becomes of an event for which a subscriber has no room.
type Policy int

const (
	// Wait makes the publisher wait until there is room, or the subscriber is closed.
	Wait Policy = iota
	// Drop leaves the event out. What is left out is counted, and told with the next one that is delivered.
	Drop
)

// Bus carries events within a process, from those who see them to those who keep, log and show them. Its zero value
// works. Its methods may be called from several goroutines.
//
// A handler is called by the publisher, before anybody else hears of the events. A subscriber receives from a channel in
// its own time. All of them see the same events in the same order. A handler must not publish, nor must the goroutine
// that receives for a subscriber that waits: they would wait for themselves.
type Bus struct {
	publishing sync.Mutex // held while events go out, so that there is one order

	mu       sync.Mutex // guards what follows; held for no longer than a look
	handlers []func([]Event)
	subs     []*Subscription
	closed   bool
}

// Handle makes a function known that is called with each list of events that is published. What it has to do is done
// when Publish returns.
func (b *Bus) Handle(f func([]Event)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handlers = append(b.handlers, f)
}

// SubscribeOptions say what a subscriber gets; the zero value gets every new event, and lets the publisher wait.
type SubscribeOptions struct {
	// Buffer is how many events may wait to be received.
	Buffer int
	Policy Policy
	// Wants picks events; nil wants all.
	Wants func(Event) bool
}

// Subscribe returns a new subscription. The name is for those who look into what goes on. On a bus that is closed, the
// subscription is too.
func (b *Bus) Subscribe(name string, o SubscribeOptions) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Subscription{Name: name, o: o, bus: b, ch: make(chan Delivery, o.Buffer), over: make(chan struct{})}
	s.C = s.ch
	if b.closed {
		s.end()
		return s
	}
	b.subs = append(b.subs, s)
	return s
}

// Publish hands events to everybody, in this order, and returns when all handlers have done their part and every
// subscriber has each event, or a policy that does not let others wait.
func (b *Bus) Publish(events ...Event) {
	if len(events) == 0 {
		return
	}
	b.publishing.Lock()
	defer b.publishing.Unlock()
	b.mu.Lock()
	handlers, subs := b.handlers, b.subs
	b.mu.Unlock()
	for _, handle := range handlers {
		handle(events)
	}
	for _, e := range events {
		for _, s := range subs {
			s.deliver(e)
		}
	}
}

// Close ends all subscriptions. What is published afterwards reaches the handlers only. It may be called again.
func (b *Bus) Close() {
	b.mu.Lock()
	subs := b.subs
	b.subs, b.closed = nil, true
	b.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// leave takes a subscription off the list. The list is made anew: a publisher may be walking through the old one.
func (b *Bus) leave(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest []*Subscription
	for _, other := range b.subs {
		if other != s {
			rest = append(rest, other)
		}
	}
	b.subs = rest
}

// Delivery is an event as a subscriber gets it.
type Delivery struct {
	Event
	// Missed counts the events that were dropped between the last delivery and this one.
	Missed int
}

// Subscription is one subscriber's end of a bus.
type Subscription struct {
	Name string
	// C delivers the events. It is closed by Close; what had been delivered before can still be received.
	C <-chan Delivery

	o    SubscribeOptions
	bus  *Bus
	ch   chan Delivery
	over chan struct{} // closed first, so that a publisher who waits lets go
	once sync.Once

	mu      sync.Mutex // held while an event is put into ch
	ended   bool
	missed  int // since the last delivery
	dropped atomic.Int64
}

// deliver puts an event into the channel, or counts it as dropped.
func (s *Subscription) deliver(e Event) {
	if s.o.Wants != nil && !s.o.Wants(e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if s.o.Policy == Wait {
		select {
		case s.ch <- Delivery{Event: e}:
		case <-s.over:
		}
		return
	}
	select {
	case s.ch <- Delivery{Event: e, Missed: s.missed}:
		s.missed = 0
	default:
		s.missed++
		s.dropped.Add(1)
	}
}

// Dropped counts the events that were left out so far, for want of room. Those of them that no delivery has told of are
// the difference to the sum of [Delivery.Missed].
func (s *Subscription) Dropped() int { return int(s.dropped.Load()) }

// Close ends the subscription, and lets go a publisher who waits for it. It may be called again.
func (s *Subscription) Close() {
	s.bus.leave(s)
	s.end()
}

func (s *Subscription) end() {
	s.once.Do(func() {
		close(s.over)
		s.mu.Lock() // nobody is putting anything into ch now
		s.ended = true
		close(s.ch)
		s.mu.Unlock()
	})
}

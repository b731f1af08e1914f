package events

import (
	"sync"
	"sync/atomic"
)

// Policy defines what happens to an event for which a subscriber has no room.
type Policy int

const (
	// Wait blocks the publisher until there is room, or the subscriber is closed.
	Wait Policy = iota
	// Drop drops the event. Dropped events are counted, and the count is part of the next delivery.
	Drop
)

// Bus distributes events within a process. Its zero value is ready to use. It is safe for concurrent use.
//
// A subscriber receives from a channel at its own pace. All of them see the same events in the same order. The
// goroutine that receives for a subscriber with Wait must not publish: it would deadlock.
type Bus struct {
	publishing sync.Mutex // held during the distribution, so that there is one order

	mu     sync.Mutex // guards the fields below; held only shortly
	subs   []*Subscription
	closed bool
}

// SubscribeOptions configure a subscription; the zero value gets every new event, and blocks the publisher.
type SubscribeOptions struct {
	// Buffer is the maximum number of events that wait for the receiver.
	Buffer int
	Policy Policy
	// Wants selects events; nil selects all.
	Wants func(Event) bool
}

// Subscribe adds a new Subscription to the bus, with a channel of deliveries, and returns it. The name is for
// debugging. On a closed bus the subscription is closed, too.
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

// Publish distributes events, in this order, and returns when every subscriber has each event or has dropped it.
func (b *Bus) Publish(events ...Event) {
	if len(events) == 0 {
		return
	}
	b.publishing.Lock()
	defer b.publishing.Unlock()
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, e := range events {
		for _, s := range subs {
			s.deliver(e)
		}
	}
}

// Close ends all subscriptions. Events published afterwards reach no one. It may be called again.
func (b *Bus) Close() {
	b.mu.Lock()
	subs := b.subs
	b.subs, b.closed = nil, true
	b.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// remove removes a subscription. It copies the list: a publisher may be iterating over the old one.
func (b *Bus) remove(s *Subscription) {
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

// Delivery is an event as delivered to a subscriber.
type Delivery struct {
	Event
	// Missed counts the events that were dropped between the last delivery and this one.
	Missed int
}

// Subscription is one subscriber's end of a bus.
type Subscription struct {
	Name string
	// C delivers the events. Close closes it; earlier deliveries can still be received.
	C <-chan Delivery

	o    SubscribeOptions
	bus  *Bus
	ch   chan Delivery
	over chan struct{} // closed first, to release a waiting publisher
	once sync.Once

	mu      sync.Mutex // held during a send to ch
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

// Dropped returns the number of events dropped so far. Those not reported by a delivery yet are the difference to the sum
// of [Delivery.Missed].
func (s *Subscription) Dropped() int { return int(s.dropped.Load()) }

// Close closes the subscription: it removes it from the bus, and releases a publisher that waits for it. It may be
// called again.
func (s *Subscription) Close() {
	s.bus.remove(s)
	s.end()
}

func (s *Subscription) end() {
	s.once.Do(func() {
		close(s.over)
		s.mu.Lock() // no goroutine is sending to ch now
		s.ended = true
		close(s.ch)
		s.mu.Unlock()
	})
}

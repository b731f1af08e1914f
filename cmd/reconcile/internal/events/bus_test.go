package events

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// numbered makes events whose Ref is their number.
func numbered(from, to int) []Event {
	var out []Event
	for i := from; i < to; i++ {
		out = append(out, Event{Ref: fmt.Sprint(i), Reason: "Test"})
	}
	return out
}

// rest receives what a closed subscription still has.
func rest(s *Subscription) (names []string, missed int) {
	for d := range s.C {
		names, missed = append(names, d.Ref), missed+d.Missed
	}
	return names, missed
}

// A subscriber that reads slowly and waits gets everything, and the publisher is as slow as it is.
func TestWaitingReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bus
		s := b.Subscribe("slow", SubscribeOptions{Buffer: 2})
		var names []string
		var reader sync.WaitGroup
		reader.Go(func() {
			for d := range s.C {
				names = append(names, d.Ref)
				time.Sleep(time.Second)
			}
		})
		start := time.Now()
		b.Publish(numbered(0, 10)...)
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("ten events went out in %s; one is read, two have room, and each other waits a second", took)
		}
		b.Close()
		reader.Wait()
		if len(names) != 10 || !slices.IsSortedFunc(names, func(a, b string) int { return len(a) - len(b) }) || s.Dropped() != 0 {
			t.Errorf("received %q, dropped %d", names, s.Dropped())
		}
	})
}

// Whoever is closed lets the publisher go, and others get what it waited with.
func TestClosedReaderLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bus
		stuck := b.Subscribe("stuck", SubscribeOptions{})
		other := b.Subscribe("other", SubscribeOptions{Buffer: 10})
		var publisher sync.WaitGroup
		publisher.Go(func() { b.Publish(numbered(0, 3)...) })
		synctest.Wait() // the publisher waits for stuck
		if n := len(other.C); n != 0 {
			t.Errorf("%d events passed the reader that is waited for", n)
		}
		stuck.Close()
		stuck.Close()
		publisher.Wait()
		other.Close()
		if names, _ := rest(other); len(names) != 3 {
			t.Errorf("the other reader has %q", names)
		}
		if names, _ := rest(stuck); len(names) != 0 {
			t.Errorf("the closed reader has %q", names)
		}
		b.Publish(numbered(0, 3)...) // to nobody
		b.Close()
		b.Close()
	})
}

// A subscriber that drops never makes the publisher wait, and knows how much it has missed, and where.
func TestDroppingReader(t *testing.T) {
	var b Bus
	s := b.Subscribe("slow", SubscribeOptions{Buffer: 2, Policy: Drop})
	b.Publish(numbered(0, 5)...) // 2, 3, 4 are dropped
	if d := <-s.C; d.Ref != "0" || d.Missed != 0 {
		t.Errorf("first %+v", d)
	}
	b.Publish(numbered(5, 7)...) // 5 tells of three, 6 is dropped
	<-s.C
	if d := <-s.C; d.Ref != "5" || d.Missed != 3 {
		t.Errorf("after the gap %+v", d)
	}
	b.Close()
	if _, missed := rest(s); missed != 0 || s.Dropped() != 4 {
		t.Errorf("dropped %d, want 4; the last one nobody could be told of but by this", s.Dropped())
	}
}

func TestPickyReader(t *testing.T) {
	var b Bus
	odd := func(e Event) bool { return e.Ref == "3" || e.Ref == "5" }
	picky := b.Subscribe("picky", SubscribeOptions{Wants: odd, Buffer: 2})
	b.Publish(numbered(0, 5)...)
	fresh := b.Subscribe("fresh", SubscribeOptions{Buffer: 1})
	b.Publish(numbered(5, 6)...)
	b.Close()
	over := b.Subscribe("over", SubscribeOptions{})
	for _, c := range []struct {
		s    *Subscription
		want string
	}{{picky, "[3 5]"}, {fresh, "[5]"}, {over, "[]"}} {
		if names, _ := rest(c.s); fmt.Sprint(names) != c.want {
			t.Errorf("%s received %v, want %s", c.s.Name, names, c.want)
		}
	}
}

// Publishers, subscribers that come and go, and slow ones, all at once: everybody sees the same order, and whoever was
// there all the time and waits sees everything.
func TestBusInACrowd(t *testing.T) {
	const publishers, each, readers = 4, 200, 6
	var b Bus
	all := b.Subscribe("all", SubscribeOptions{Buffer: publishers * each})
	var reading, publishing sync.WaitGroup
	seen := make([][]string, readers)
	lost := make([]int, readers)
	for i := range readers {
		s := b.Subscribe(fmt.Sprint(i), SubscribeOptions{Buffer: i, Policy: Policy(i % 2)})
		reading.Go(func() {
			names, missed := rest(s)
			seen[i], lost[i] = names, s.Dropped()
			if missed > lost[i] {
				t.Errorf("told of %d dropped events, of %d", missed, lost[i])
			}
		})
	}
	for p := range publishers {
		publishing.Go(func() {
			for n := range each {
				b.Publish(numbered(p*each+n, p*each+n+1)...)
				if n%50 == 0 {
					s := b.Subscribe("passing", SubscribeOptions{})
					s.Close()
				}
			}
		})
	}
	publishing.Wait()
	b.Close()
	reading.Wait()
	handled, _ := rest(all)
	for i, names := range seen {
		if len(names)+lost[i] != publishers*each || Policy(i%2) == Wait && lost[i] != 0 {
			t.Errorf("reader %d: %d events and %d dropped", i, len(names), lost[i])
		}
		if !subsequence(names, handled) {
			t.Errorf("reader %d saw another order than the handler", i)
		}
	}
}

// subsequence reports whether all of some stand in all, in that order.
func subsequence(some, all []string) bool {
	for _, name := range all {
		if len(some) > 0 && some[0] == name {
			some = some[1:]
		}
	}
	return len(some) == 0
}

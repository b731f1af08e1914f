package embedhttp

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	firstWait   = 500 * time.Millisecond // after the first failure; doubled after each further one
	longestWait = 30 * time.Second
	// longestSaid is how long the endpoint may ask to wait; when it wants more, search goes on by words.
	longestSaid = 2 * time.Minute
	tries       = 6
)

// pace spreads requests over time. The zero value does not.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time // when the next request may begin
}

// turn takes the next turn, and returns how long it is until then.
func (p *pace) turn(now time.Time) time.Duration {
	if p.every == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(p.every)
	return d
}

// waitAfter is how long to wait after a failed try, counted from 0, and whether that is worth it. The endpoint's word
// counts more than the number of the try.
func waitAfter(try int, h http.Header, now time.Time) (time.Duration, bool) {
	d := min(firstWait<<try, longestWait)
	after := h.Get("Retry-After")
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		d = max(d, time.Duration(n)*time.Second)
	} else if t, err := http.ParseTime(after); err == nil {
		if there, err := http.ParseTime(h.Get("Date")); err == nil {
			now = there // its time is by its own clock
		}
		d = max(d, t.Sub(now))
	}
	return d, d <= longestSaid
}

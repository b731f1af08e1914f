package embedhttp

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	firstWait   = 500 * time.Millisecond // after the first failure; doubled after each further one
	longestWait = 30 * time.Second
	// longestSaid is the maximum wait that the endpoint may ask for; beyond it, search is lexical only.
	longestSaid = 2 * time.Minute
	tries       = 6
)

// pace spaces requests. The zero value does not.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time // when the next request may begin
}

// turn reserves the next request, and returns the time until then.
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

// waitAfter returns how long to wait after a failed try, counted from 0, and whether a retry is worth it. The endpoint's
// wait overrides the default.
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

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

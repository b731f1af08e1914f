package github

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/regular"
)

const (
	longestLimit  = 2 * time.Hour   // GitHub's longest is an hour; a longer one is wrong, and retried then
	unsaidLimit   = time.Minute     // a secondary limit without an end time; doubled at each further one
	longestUnsaid = 8 * time.Minute // upper bound of the doubling
)

// limitOf returns the limit that a response reports, or nil. now is the local time; strikes is the number of successive
// limits without an end time.
func limitOf(resp *http.Response, message string, now time.Time, strikes int) *Limited {
	text := strings.ToLower(message)
	h := resp.Header
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
	case resp.StatusCode == http.StatusForbidden && (h.Get("Retry-After") != "" || h.Get("X-RateLimit-Remaining") == "0" ||
		strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")):
	default:
		return nil
	}
	return limit(resp, plainAnswer(message), now, strikes)
}

// limit computes the end of a limit. GitHub's times are relative to its own clock, so only their difference to the time of
// the response counts.
func limit(resp *http.Response, why string, now time.Time, strikes int) *Limited {
	if why == "" {
		why = strconv.Itoa(resp.StatusCode)
	}
	d, said := waitOf(resp.Header, now)
	if !said {
		d = min(unsaidLimit<<min(strikes, 10), longestUnsaid)
	}
	return &Limited{Until: now.Add(min(max(d, time.Second), longestLimit)), Why: why, guessed: !said}
}

func waitOf(h http.Header, now time.Time) (d time.Duration, said bool) {
	there := now
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		there = t
	}
	after := h.Get("Retry-After")
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if t, err := http.ParseTime(after); err == nil {
		return t.Sub(there), true
	}
	if reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && h.Get("X-RateLimit-Remaining") == "0" {
		return time.Unix(reset, 0).Sub(there), true
	}
	return 0, false
}

// limits stores until when nothing may be sent, also in a file, so that the next process sends no useless request: GitHub
// bans clients that continue. The holder of the wire's turn owns it.
type limits struct {
	now     func() time.Time
	file    string // "": none
	current *Limited
	strikes int // successive limits without an end time
}

// newLimits returns the limits of a token on a host, including those that an earlier process stored in dir.
func newLimits(dir, host, token string, now func() time.Time) *limits {
	l := &limits{now: now}
	if dir == "" {
		return l
	}
	l.file = filepath.Join(dir, fmt.Sprintf("limit-%x.json", sha256.Sum256([]byte(host+"\n"+token)))[:30])
	data, err := regular.ReadPath(l.file)
	var kept Limited
	if err == nil && len(data) < 4096 && json.Unmarshal(data, &kept) == nil && kept.Until.Before(now().Add(longestLimit)) {
		l.current = &kept
	}
	return l
}

// left returns the current limit and its remaining time, or nil.
func (l *limits) left() (*Limited, time.Duration) {
	if l.current == nil {
		return nil, 0
	}
	if d := l.current.Until.Sub(l.now()); d > 0 {
		return l.current, d
	}
	l.current = nil
	return nil, 0
}

// set stores a limit. A failed write costs the next process one request.
func (l *limits) set(e *Limited) {
	l.current = e
	if e.guessed {
		l.strikes++
	}
	if data, err := json.Marshal(e); err == nil && l.file != "" {
		_ = replaceCacheFile(l.file, data)
	}
}

// see records the limits in a response: a successful one may be the last one for now.
func (l *limits) see(resp *http.Response) {
	if resp.StatusCode >= 400 {
		return // handled by limitOf
	}
	l.strikes = 0
	if resp.Header.Get("X-RateLimit-Remaining") == "0" {
		if _, said := waitOf(resp.Header, l.now()); said {
			l.set(limit(resp, "no requests are left", l.now(), 0))
		}
	}
}

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
	longestLimit  = 2 * time.Hour   // GitHub's longest is an hour; what says more is mistaken, and is asked again then
	unsaidLimit   = time.Minute     // of a secondary limit that does not say when it ends; doubled at each further one
	longestUnsaid = 8 * time.Minute // the most that it is doubled to
)

// limitOf returns the limit that an answer says is reached, or nil. now is the time here; strikes is how many limits in
// a row did not say when they end.
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
	return limit(resp, plain(message), now, strikes)
}

// limit reads from an answer until when the limit holds. GitHub's times are by its own clock, so they are taken as
// differences to the time of the answer.
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

// limits remembers until when nothing may be sent, in a file too, so that the next process does not ask in vain: GitHub
// bans those who go on. They belong to whoever has the wire's turn.
type limits struct {
	now     func() time.Time
	file    string // "": none
	current *Limited
	strikes int // limits in a row that did not say when they end
}

// newLimits returns the limits of a token on a host, with what an earlier process left in dir.
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

// left returns the limit that holds, and for how long; nil when there is none.
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

// set keeps a limit. That it cannot be written costs the next process one request.
func (l *limits) set(e *Limited) {
	l.current = e
	if e.guessed {
		l.strikes++
	}
	if data, err := json.Marshal(e); err == nil && l.file != "" {
		_ = replace(l.file, data)
	}
}

// see takes note of what an answer says of limits: also one that says yes may be the last one for now.
func (l *limits) see(resp *http.Response) {
	if resp.StatusCode >= 400 {
		return // judged by limitOf
	}
	l.strikes = 0
	if resp.Header.Get("X-RateLimit-Remaining") == "0" {
		if _, said := waitOf(resp.Header, l.now()); said {
			l.set(limit(resp, "no requests are left", l.now(), 0))
		}
	}
}

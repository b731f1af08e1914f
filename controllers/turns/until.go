package turns

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// longestLimit is the longest time that a limit may last; a message that names a later time is not believed.
const longestLimit = 32 * 24 * time.Hour

// patterns are those of times in messages.
var patterns = sync.OnceValue(func() (p struct{ instant, unix, relative, amount *regexp.Regexp }) {
	p.instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
	p.unix = regexp.MustCompile(`(?:\||reset[a-z_]*["' ]*[:=]? ?)(\d{10})(\d{3})?\b`)
	p.relative = regexp.MustCompile(`(?i)(?:in|after|retry[ _-]?after["' ]*[:=]?)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)`)
	p.amount = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*([a-z]+)`)
	return p
})

// firstTime returns when a limit ends: from the value of a Retry-After header, else from a message; the zero time if neither
// names one, which it also returns if that is not within longestLimit after now. Times without a zone are not read.
func firstTime(now time.Time, header, message string) time.Time {
	for _, t := range []time.Time{headerTime(now, header), messageTime(now, header), messageTime(now, message)} {
		if t = t.Truncate(time.Millisecond); t.After(now) && t.Sub(now) <= longestLimit {
			return t
		}
	}
	return time.Time{}
}

// headerTime reads seconds or an HTTP date.
func headerTime(now time.Time, v string) time.Time {
	v = strings.TrimSpace(v)
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 && s <= longestLimit.Seconds() {
		return now.Add(time.Duration(s * float64(time.Second)))
	}
	t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", v)
	if err != nil {
		return time.Time{}
	}
	return t
}

// messageTime reads RFC 3339, a Unix time after "|" or "reset", or a relative time as "in 6m0s" and "in 3 days 4 hours".
func messageTime(now time.Time, text string) time.Time {
	if s := patterns().instant.FindString(text); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err == nil {
			return t
		}
	}
	if m := patterns().unix.FindStringSubmatch(text); m != nil {
		if s, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return time.Unix(s, 0)
		}
	}
	for _, m := range patterns().relative.FindAllStringSubmatch(text, -1) {
		if d := span(m[1]); d > 0 {
			return now.Add(d)
		}
	}
	return time.Time{}
}

// units are the units of relative times.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute,
	"minute": time.Minute, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
}

// span adds up amounts with units; 0 without any that it knows.
func span(text string) time.Duration {
	var sum time.Duration
	for _, m := range patterns().amount.FindAllStringSubmatch(text, -1) {
		unit, n := strings.ToLower(m[2]), 0.0
		d, ok := units[unit]
		if !ok {
			d, ok = units[strings.TrimSuffix(unit, "s")]
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if !ok || err != nil || n*float64(d) > float64(longestLimit) {
			break
		}
		sum += time.Duration(n * float64(d))
	}
	return sum
}

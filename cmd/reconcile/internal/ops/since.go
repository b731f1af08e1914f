package ops

import (
	"strconv"
	"strings"
	"time"
)

// ParseSince parses the start of a period: an age (7d, 2w, 1d12h, 90m), a day in UTC (2026-02-01), an RFC 3339 time, or
// all, which is the zero time.
func ParseSince(word string, now time.Time) (time.Time, error) {
	if word == "all" {
		return time.Time{}, nil
	}
	at, ok := parseTime(word, now)
	if !ok {
		return at, badField("since", " %q: write a time like 7d, 2w, 24h or 1d12h, a day like 2026-02-01, or all", word)
	}
	return at, nil
}

// ParseTime parses a bound of a period like [ParseSince], but for all; "" is the zero time.
func ParseTime(field, word string, now time.Time) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	at, ok := parseTime(word, now)
	if !ok {
		return at, badField(field, " %q: write how long ago, like 30d or 24h, a day like 2026-02-27, or an RFC 3339 time", word)
	}
	return at, nil
}

func parseTime(word string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, word); err == nil {
			return at, true
		}
	}
	ago, ok := ParseAge(word)
	return now.Add(-ago), ok
}

// longest bounds durations, to prevent overflow.
const longest = 100 * 365 * 24 * time.Hour

// ParseAge parses a positive duration with optional weeks and days before Go's units: 2w, 7d, 1w2d12h30m.
func ParseAge(s string) (time.Duration, bool) {
	var sum time.Duration
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, rest, ok := strings.Cut(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > uint64(longest/unit.is) {
			return 0, false
		}
		sum, s = sum+time.Duration(n)*unit.is, rest
	}
	d, err := time.ParseDuration(s)
	if s == "" {
		d, err = 0, nil
	}
	ok := err == nil && d >= 0 && d <= longest && sum+d > 0 && sum+d <= longest
	return sum + d, ok
}

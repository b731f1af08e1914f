package merge

import (
	"bytes"
	"time"
)

// unit is a value that is taken from one side as a whole. The zero unit, without text, represents a missing value.
type unit struct {
	at   time.Time // zero where it has no time
	text []byte    // canonical; equal units have equal texts
}

func (u unit) same(v unit) bool { return bytes.Equal(u.text, v.text) }

// compare orders units: missing ones first, then by time, then by text.
func (u unit) compare(v unit) int {
	if len(u.text) == 0 || len(v.text) == 0 {
		return len(u.text) - len(v.text)
	}
	if c := u.at.Compare(v.at); c != 0 {
		return c
	}
	return bytes.Compare(u.text, v.text)
}

// second reports whether of two units with a common ancestor the second is taken: what changed over what did not, else
// the greater. Both being the same, it does not matter.
func second(base, a, b unit) bool { return pick(base, a, b, unit.compare) }

// pick is second by another order.
func pick(base, a, b unit, compare func(a, b unit) int) bool {
	switch {
	case a.same(b) || b.same(base):
		return false
	case a.same(base):
		return true
	}
	return compare(b, a) > 0
}

// ahead reports whether a time is one to come, or that of something begun: it does not tell how late something is known.
func ahead(field string) bool {
	return field == "RetryAt" || field == "StaleAfter" || field == "Intended"
}

package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time is an instant in UTC with millisecond precision; its JSON form is RFC 3339 ("2026-02-27T10:00:00Z", fraction
// only when it is not zero). The zero Time marshals as null.
type Time struct{ time.Time }

// NewTime converts t to a time in UTC, truncated to milliseconds: the zone, the monotonic clock, and smaller fractions
// cannot be stored in a status.
func NewTime(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

const timeLayout = "2006-01-02T15:04:05.999Z07:00"

// Later returns the later of two times.
func Later(a, b Time) Time {
	if b.After(a.Time) {
		return b
	}
	return a
}

// Earlier returns the earlier of two times; one that is zero does not count.
func Earlier(a, b Time) Time {
	if a.IsZero() || !b.IsZero() && b.Before(a.Time) {
		return b
	}
	return a
}

// MarshalJSON encodes the time as a JSON string in UTC, in the form described at Time, and the zero time as null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(timeLayout) + `"`), nil
}

// UnmarshalJSON reads RFC 3339, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	s := string(b)
	if n := len(s); n > 1 && s[0] == '"' && s[n-1] == '"' && strings.IndexByte(s, '\\') < 0 {
		s = s[1 : n-1] // most have nothing to unquote
	} else if in, err := strconv.Unquote(s); err != nil {
		return fmt.Errorf("time: %s is not a string", b)
	} else {
		s = in
	}
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("time: %q is not RFC 3339, for example 2026-02-27T10:00:00Z", s)
	}
	*t = NewTime(v)
	return nil
}

// Duration is a length of time written as Go writes it: "1h30m", "10s". Negative values are refused.
type Duration time.Duration

// MaxDuration is the longest duration that a spec may ask for.
const MaxDuration = Duration(366 * 24 * time.Hour)

// ParseDuration parses a duration, for example 90s, 10m or 1h30m, that is not negative and at most 366 days.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || s[0] == '+' || s[0] == '.':
		return 0, fmt.Errorf("%q is not a duration, for example 90s, 10m or 1h30m", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	case Duration(d) > MaxDuration:
		return 0, fmt.Errorf("%q is more than 366 days", s)
	}
	return Duration(d), nil
}

// Std converts the duration to a time.Duration of the standard library.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String formats the duration in its shortest form that reads back, without 0s or 0m at the end: 1h30m, not 1h30m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON encodes the duration as a quoted JSON string.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(d.String())), nil }

// UnmarshalJSON decodes the duration from a quoted JSON string, with ParseDuration.
func (d *Duration) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("%s is not a duration in quotes, for example \"10m\"", b)
	}
	v, err := ParseDuration(s)
	*d = v
	return err
}

// Stamp is an instant in the files of the memory: RFC 3339 in UTC, always with three digits of milliseconds, as programs
// in JavaScript write it, "2026-02-27T10:00:00.000Z"; null for the zero time.
type Stamp struct{ time.Time }

// StampOfTime is t to the millisecond, in UTC.
func StampOfTime(t time.Time) Stamp {
	if t.IsZero() {
		return Stamp{}
	}
	return Stamp{t.UTC().Truncate(time.Millisecond)}
}

// String formats the stamp in UTC as it is written in files; "" for the zero stamp.
func (s Stamp) String() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(stampLayout)
}

// MarshalJSON writes the instant.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	return []byte(s.UTC().Format(`"` + stampLayout + `"`)), nil
}

// UnmarshalJSON decodes a stamp from JSON, any time in the format of RFC 3339.
func (s *Stamp) UnmarshalJSON(b []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	*s = StampOfTime(t)
	return nil
}

// checkTime returns the error of an invalid time, in the words of a problem.
func checkTime(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1 || t.UTC().Year() > 9999 || t.UTC().Year() < 1 {
		return fmt.Errorf("%q is not a time in the form 2026-02-27T10:00:00Z", s)
	}
	return nil
}

package render

import (
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Age formats a duration in its one or two largest units, as kubectl does: 45s, 3m, 2h5m, 3d, 2y30d. Below ten seconds it
// shows tenths, below a second milliseconds.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day:
		return units(d, day, "d", time.Hour, "h")
	case d < 730*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return units(d, 365*day, "y", day, "d")
}

func units(d, large time.Duration, l string, small time.Duration, s string) string {
	if rest := d % large / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/large, l, rest, s)
	}
	return fmt.Sprintf("%d%s", d/large, l)
}

// Plural returns n and the word in the singular or plural, such as "1 file" or "3 files".
func Plural(n int, word string) string {
	return schemas.Count(n, word)
}

// EndLine adds a line feed to the end of a text, unless it is empty or has one.
func EndLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

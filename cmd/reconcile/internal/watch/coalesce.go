package watch

import (
	"slices"
	"time"
)

// Hint names paths that may have changed.
type Hint struct {
	// Paths are slash paths below the root, sorted, each once. The receiver owns the slice.
	Paths []string
	// Full means that any path may have changed; Paths is then empty.
	Full bool
}

// Limits of one hint.
const (
	burstFactor = 5    // a continuing burst is reported after this many times the debounce
	maxPaths    = 1024 // with more paths than this, a full scan is as cheap
)

// coalescer collects changes until there are none for a while. It has no clock: the caller passes the time.
type coalescer struct {
	quiet time.Duration

	hint        Hint
	urgent      bool // report without waiting
	first, last time.Time
}

// path records a change of path at the time now.
func (c *coalescer) path(now time.Time, path string) {
	c.touch(now)
	if c.hint.Full {
		return
	}
	i, known := slices.BinarySearch(c.hint.Paths, path)
	switch {
	case known:
	case len(c.hint.Paths) == maxPaths:
		c.hint = Hint{Full: true}
	default:
		c.hint.Paths = slices.Insert(c.hint.Paths, i, path)
	}
}

// everything records that any path may have changed at the time now. An urgent record is reported at once.
func (c *coalescer) everything(now time.Time, urgent bool) {
	c.touch(now)
	c.hint = Hint{Full: true}
	c.urgent = c.urgent || urgent
}

func (c *coalescer) touch(now time.Time) {
	if !c.pending() {
		c.first = now
	}
	c.last = now
}

func (c *coalescer) pending() bool { return c.hint.Full || len(c.hint.Paths) > 0 }

// due returns the time to report the hint; ok is false without a hint.
func (c *coalescer) due() (at time.Time, ok bool) {
	if !c.pending() {
		return time.Time{}, false
	}
	if c.urgent {
		return c.first, true
	}
	at = c.last.Add(c.quiet)
	if latest := c.first.Add(burstFactor * c.quiet); latest.Before(at) {
		at = latest
	}
	return at, true
}

// taken clears the hint, which now belongs to the receiver.
func (c *coalescer) taken() { *c = coalescer{quiet: c.quiet} }

package watch

import (
	"slices"
	"time"
)

// Hint says where something may have changed.
type Hint struct {
	// Paths are slash paths below the root, sorted, each once. The receiver owns the slice.
	Paths []string
	// Full means that anything may have changed; Paths is then empty.
	Full bool
}

// Bounds of one hint.
const (
	burstFactor = 5    // a burst is reported after at most this many times the debounce, though it goes on
	maxPaths    = 1024 // with more paths than this, looking everywhere is as cheap
)

// coalescer gathers changes until they have been quiet for a while. It knows no clock: the caller says what time it is.
type coalescer struct {
	quiet time.Duration

	hint        Hint
	urgent      bool // report without waiting
	first, last time.Time
}

// path notes that path changed at the time now.
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

// everything notes that anything may have changed at the time now. An urgent note does not wait for quiet.
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

// due returns when the hint is to be reported; ok is false while there is nothing to report.
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

// taken forgets the hint, which now belongs to whoever received it.
func (c *coalescer) taken() { *c = coalescer{quiet: c.quiet} }

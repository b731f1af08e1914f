package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestCoalescerDue(t *testing.T) {
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	for _, c := range []struct {
		name    string
		changes []time.Duration
		due     time.Duration
	}{
		{"one change waits for quiet", []time.Duration{0}, 100 * ms},
		{"each further change waits again", []time.Duration{0, 90 * ms, 180 * ms}, 280 * ms},
		{"a burst is cut off", []time.Duration{0, 90 * ms, 180 * ms, 270 * ms, 360 * ms, 450 * ms}, 500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := coalescer{quiet: 100 * ms}
			for _, d := range c.changes {
				g.path(at(d), "specs/a.yaml")
			}
			if due, ok := g.due(); !ok || !due.Equal(at(c.due)) {
				t.Errorf("due %v, %v, want %v", due.Sub(epoch), ok, c.due)
			}
		})
	}
}

func TestCoalescerUrgent(t *testing.T) {
	g := coalescer{quiet: 100 * ms}
	g.path(epoch, "a")
	g.everything(epoch.Add(50*ms), true)
	g.path(epoch.Add(60*ms), "b")
	if due, ok := g.due(); !ok || due.After(epoch.Add(50*ms)) {
		t.Errorf("due %v, %v after an urgent note at 50ms", due.Sub(epoch), ok)
	}
	if !g.hint.Full || g.hint.Paths != nil {
		t.Errorf("hint %+v, want a full one without paths", g.hint)
	}
}

func TestCoalescerEmpty(t *testing.T) {
	g := coalescer{quiet: 100 * ms}
	if due, ok := g.due(); ok {
		t.Errorf("an empty coalescer is due at %v", due)
	}
	g.path(epoch, "a")
	g.taken()
	if due, ok := g.due(); ok {
		t.Errorf("after the hint was taken, another is due at %v", due)
	}
}

func TestCoalescerPaths(t *testing.T) {
	g := coalescer{quiet: 100 * ms}
	for _, p := range []string{"b", "a", "c", "a"} {
		g.path(epoch, p)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(g.hint.Paths, want) {
		t.Errorf("paths %q, want %q", g.hint.Paths, want)
	}
	for i := range maxPaths {
		g.path(epoch, fmt.Sprintf("specs/%d.yaml", i))
	}
	if !g.hint.Full || len(g.hint.Paths) != 0 {
		t.Errorf("more than %d paths: full %v with %d paths, want a full hint", maxPaths, g.hint.Full, len(g.hint.Paths))
	}
}

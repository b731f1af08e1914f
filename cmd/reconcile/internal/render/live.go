package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// The live view is redrawn ten times a second at most, and shows this many nodes at most.
const (
	redrawEvery = 100 * time.Millisecond
	liveRows    = 12
)

// Live shows on a terminal which nodes run, for how long, and how many are left. What failed stays on the screen as a
// line; everything else is taken off by Close.
type Live struct {
	w       io.Writer
	palette Palette
	size    func() (width, height int)
	now     func() time.Time

	mu      sync.Mutex
	running []Transition          // in the order of their start
	owners  map[string]Transition // the latest of each
	failed  map[string]bool       // nodes whose last attempt failed, by name
	drawn   int                   // lines on the screen
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

// NewLive starts a live view on w. size tells the terminal's columns and rows, now the time.
func NewLive(w io.Writer, p Palette, size func() (width, height int), now func() time.Time) *Live {
	l := &Live{
		w: w, palette: p, size: size, now: now, owners: map[string]Transition{}, failed: map[string]bool{},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.tick()
	return l
}

func (l *Live) tick() {
	defer close(l.stopped)
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.mu.Lock()
			l.draw("")
			l.mu.Unlock()
		}
	}
}

// Event takes a transition in; it is seen at the next redraw.
func (l *Live) Event(t Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.owners[t.Owner] = t
	l.running = slices.DeleteFunc(l.running, func(r Transition) bool { return r.Owner == t.Owner && r.Node == t.Node })
	delete(l.failed, nodeName(t))
	switch t.State {
	case "Running":
		l.running = append(l.running, t)
	case "Failed", "TimedOut":
		l.failed[nodeName(t)] = true
		l.draw(transitionLine(l.palette, t) + "\n")
	}
}

// Note shows a line that stays.
func (l *Live) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.draw(Line(text) + "\n")
	}
}

// Close takes the view off the screen.
func (l *Live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	io.WriteString(l.w, l.erase())
	l.mu.Unlock()
	close(l.stop)
	<-l.stopped
}

// draw replaces the view, in one write so that it does not flicker; above is put before it and stays.
func (l *Live) draw(above string) {
	if l.closed {
		return
	}
	lines := l.lines()
	if above == "" && len(lines) == 0 && l.drawn == 0 {
		return
	}
	out := l.erase() + above
	for _, line := range lines {
		out += line + "\n"
	}
	l.drawn = len(lines)
	io.WriteString(l.w, out) // a terminal that is gone is no reason to end a run
}

// erase moves to the first line of the view and clears from there.
func (l *Live) erase() string {
	if l.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", l.drawn)
}

// lines is the view: a headline and the nodes that have run longest.
func (l *Live) lines() []string {
	if len(l.owners) == 0 {
		return nil
	}
	width, height := l.size()
	rows := max(min(liveRows, height-3), 1)
	lines := []string{Cut(l.headline(), width-1)}
	names := 0
	for _, r := range l.running[:min(rows, len(l.running))] {
		names = max(names, Width(nodeName(r)))
	}
	for i, r := range l.running {
		if i == rows {
			lines = append(lines, Cut(fmt.Sprintf("  … and %d more", len(l.running)-rows), width-1))
			break
		}
		name := nodeName(r)
		pad := strings.Repeat(" ", names-Width(name)+2)
		lines = append(lines, Cut("  "+name+pad+Age(l.now().Sub(r.At)), width-1))
	}
	return lines
}

// headline counts. A failed node that is not tried again is not left, nor is it done.
func (l *Live) headline() string {
	done, total := 0, 0
	for _, t := range l.owners {
		done += t.Done
		total += t.Total
	}
	failed := ""
	if n := len(l.failed); n > 0 {
		failed = fmt.Sprintf("%d failed, ", n)
	}
	left := max(total-done-len(l.running)-len(l.failed), 0)
	return fmt.Sprintf("%d of %d nodes done, %d running, %s%d left", done, total, len(l.running), failed, left)
}

func nodeName(t Transition) string { return Line(t.Owner + " " + t.Node) }

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// redrawEvery is the minimum time between two redraws.
const redrawEvery = 250 * time.Millisecond

// meterAfter is how long counted work runs before the live view shows it, and meterUntil how long it is shown after its
// last update.
const (
	meterAfter = 500 * time.Millisecond
	meterUntil = 10 * time.Second
)

// Live shows the running, retrying and waiting nodes on a terminal, and an estimate of the remaining time. It redraws in
// place, and disappears while nothing runs. Failures stay on the screen; after the last node ends, a list of the nodes that
// ran and their durations stays, too.
type Live struct {
	palette Palette
	size    func() (width, height int)
	now     func() time.Time

	mu     sync.Mutex
	screen screen
	track  progress.Tracker
	events eventLines
	ran    ranNodes
	meter  meter
	idle   bool // nothing ran at the last redraw
	closed bool

	stop    chan struct{}
	stopped chan struct{}
}

// NewLive returns a live view on the terminal w, and starts the ticks that redraw it. size returns the terminal's
// columns and rows, now the time; cpus is the number of processors, which limits.concurrentTasks 0 means.
func NewLive(w io.Writer, p Palette, size func() (width, height int), now func() time.Time, cpus int) *Live {
	l := &Live{
		palette: p, size: size, now: now, screen: screen{w: w}, track: progress.Tracker{CPUs: cpus}, idle: true,
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
			l.look()
			l.mu.Unlock()
		}
	}
}

// look redraws the view. If nothing has run since the last call, it prints a list of what ran, and of what waits.
func (l *Live) look() {
	was := l.idle
	if l.draw(""); !was || !l.idle {
		return
	}
	waiting := l.waiting()
	if above := l.ended(); above != "" {
		l.draw(above + waiting)
	}
}

// waiting lists the nodes that wait for a person or an answer while nothing runs.
func (l *Live) waiting() string {
	const most = 10
	now, width := l.now(), l.fitted().Width
	v := l.track.View(now, most)
	if len(v.Nodes) == 0 {
		return ""
	}
	text := "waiting:\n" + strings.Join(nodeLines(v.Nodes, now, width-1), "\n") + "\n"
	if v.Hidden > 0 {
		text += fmt.Sprintf("  … and %d more\n", v.Hidden)
	}
	return text
}

// ended returns the list of what ran since the last one.
func (l *Live) ended() string {
	text := l.ran.take(l.fitted())
	if text != "" {
		l.track.Reset()
	}
	return text
}

// fitted returns the palette for the present size of the terminal.
func (l *Live) fitted() Palette {
	width, _ := l.size()
	return Palette{On: l.palette.On, Width: width}
}

// Report tracks a report about an effect, and shows it at the next redraw of the live view. It implements [Progress].
func (l *Live) Report(r settle.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(l.track.Report(r))
}

// Tree implements [Progress].
func (l *Live) Tree(t *state.Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter = meter{}
	l.show(l.track.Tree(t))
}

// show collects ended nodes for the list, and shows failures at once.
func (l *Live) show(events []progress.Event) {
	above := ""
	for _, e := range events {
		if e.Ended() {
			l.ran.add(e)
		}
		if e.State == schemas.OutcomeFailed || e.State == schemas.OutcomeTimedOut {
			above += strings.Join(l.events.of(l.fitted(), e), "\n") + "\n"
		}
	}
	if above != "" {
		l.draw(above)
	}
}

// Count sets the meter of the live view to the progress of a task: done of total.
func (l *Live) Count(task string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter.set(task, done, total, l.now())
}

// Note draws a text as a permanent line above the live view.
func (l *Live) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(broken(Line(text), l.fitted().Width) + "\n")
}

// Close closes the live view: it removes it from the screen, and draws the list of the ended tasks.
func (l *Live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.show(l.track.Flush())
	width, height := l.size()
	l.screen.draw(l.ended(), nil, width, height)
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	<-l.stopped
}

// draw redraws the view; above is printed permanently before it.
func (l *Live) draw(above string) {
	if l.closed {
		return
	}
	width, height := l.size()
	l.screen.draw(above, l.lines(width, height), width, height)
}

// lines returns the view: a headline and nodes, as many as fit on the terminal above the cursor's line.
func (l *Live) lines(width, height int) []string {
	now := l.now()
	var lines []string
	if m := &l.meter; m.done < m.total && now.Sub(m.began) >= meterAfter && now.Sub(m.last) < meterUntil {
		lines = append(lines, Cut(m.line(now), width-1))
	}
	rows := max(height-2-len(lines), 0)
	v := l.track.View(now, rows)
	if l.idle = v.Idle(); l.idle {
		return lines
	}
	lines = append(lines, Cut(liveHeadline(v), width-1))
	if v.Hidden > 0 && rows > 0 {
		v.Nodes = v.Nodes[:rows-1]
		v.Hidden++
	}
	lines = append(lines, nodeLines(v.Nodes, now, width-1)...)
	if v.Hidden > 0 && rows > 0 {
		lines = append(lines, Cut(fmt.Sprintf("  … and %d more", v.Hidden), width-1))
	}
	return lines
}

// liveHeadline counts: "6 of 9 nodes done, about 40s left, 2 running, 1 waiting". A failed node that is not retried counts as
// not done.
func liveHeadline(v progress.View) string {
	s := fmt.Sprintf("%d of %s done", v.Done, schemas.Count(v.Total, "node"))
	if left := v.Left.Round(time.Second); left > 0 {
		word := "about"
		if v.Least {
			word = "at least"
		}
		s += fmt.Sprintf(", %s %s left", word, Age(left))
	}
	for _, part := range []struct {
		n    int
		word string
	}{{v.Running, "running"}, {v.Failed, "failed"}, {v.Waiting, "waiting"}, {v.Queued, "queued"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return s
}

// nodeLines returns the rows of the view, in two columns: names take at most half of the width.
func nodeLines(nodes []progress.Node, now time.Time, width int) []string {
	lines := make([]string, len(nodes))
	column := 0
	for i, n := range nodes {
		lines[i] = nodeName(n.Owner, n.Name, max(width/2, 10))
		column = max(column, textWidth(lines[i]))
	}
	for i, n := range nodes {
		pad := strings.Repeat(" ", column-textWidth(lines[i])+2)
		lines[i] = Cut("  "+lines[i]+pad+liveState(n, now), width)
	}
	return lines
}

// nodeName returns "dag/checks build", in at most width columns, at least 10: long names are cut so that nodes stay apart.
func nodeName(owner, name string, width int) string {
	const shortest = 6
	owner, name = Line(owner), Line(name)
	if room := width - textWidth(name) - 1; textWidth(owner) > room {
		owner = Cut(owner, max(room, shortest))
	}
	return owner + " " + cutMiddle(name, width-textWidth(owner)-1)
}

// liveState describes a node's activity in a few words.
func liveState(n progress.Node, now time.Time) string {
	attempt := fmt.Sprintf("attempt %d of %d", n.Attempt, n.Attempts)
	switch {
	case n.State == schemas.NodeRunning:
		s := Age(now.Sub(n.Since))
		if n.Usual > 0 {
			s += " of about " + Age(n.Usual)
		}
		if n.Attempt > 1 {
			s += ", " + attempt
		}
		if n.Step != "" {
			s = n.Step + " " + s
		}
		if n.Asks != "" {
			s += ": " + Line(n.Asks)
		}
		return s
	case n.Held != "":
		return Line(n.Held)
	case n.Due.After(now):
		return attempt + " in " + Age(n.Due.Sub(now))
	case !n.Due.IsZero():
		return attempt + " is due"
	}
	return Line(n.Message)
}

// screen redraws the last lines of a terminal in place, above the cursor. It clears lines individually: clearing the rest
// of the screen makes some terminals keep the old content in their history.
type screen struct {
	w     io.Writer
	lines []string // as drawn, at width
	width int
}

// draw replaces the lines, in one write to avoid flicker; above is printed permanently before them. Each line must be
// narrower than the terminal, and all of them together lower.
func (s *screen) draw(above string, lines []string, width, height int) {
	if above == "" && slices.Equal(lines, s.lines) && (width == s.width || len(lines) == 0) {
		return
	}
	var b strings.Builder
	up := min(screenRows(s.lines, width), max(height-1, 0))
	b.WriteString(moveCursor(up, 'A'))
	if above != "" || width != s.width || len(lines) < up {
		b.WriteString(strings.Repeat("\x1b[2K\x1b[1B", up))
		b.WriteString(moveCursor(up, 'A'))
	}
	b.WriteString(above)
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	s.lines, s.width = lines, width
	io.WriteString(s.w, b.String()) // a closed terminal does not end a run
}

// moveCursor goes up or down by n rows, to the start of the row.
func moveCursor(n int, way byte) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%d%c\r", n, way)
}

// screenRows returns how many rows the lines take on a terminal of this width, which may have wrapped wider lines since they were
// drawn.
func screenRows(lines []string, width int) int {
	n := 0
	for _, line := range lines {
		n += max((textWidth(line)+width-1)/max(width, 1), 1)
	}
	return n
}

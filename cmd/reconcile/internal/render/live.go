package render

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// redrawEvery is how often the live view is drawn at most.
const redrawEvery = 250 * time.Millisecond

// meterAfter is how long counted work takes before the live view shows it, and meterUntil how long it is shown after it was
// told of last.
const (
	meterAfter = 500 * time.Millisecond
	meterUntil = 10 * time.Second
)

// Live shows on a terminal which nodes run, are tried again, or wait for somebody, and how long the rest may take. It is
// drawn in place, and vanishes while nothing runs. What failed stays on the screen; when everything has ended, so does
// a list of what ran and for how long.
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
	idle   bool // nothing ran when it was drawn last
	closed bool

	stop    chan struct{}
	stopped chan struct{}
}

// NewLive starts a live view on w. size tells the terminal's columns and rows, now the time; cpus is the number of
// processors that limits.concurrentTasks 0 stands for.
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

// look draws the view. Where nothing has run since the last look it leaves a list of what did, and of what waits.
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

// waiting lists the nodes that wait for somebody while nothing runs.
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

// ended is the list of what ran since the last one.
func (l *Live) ended() string {
	text := l.ran.take(l.fitted())
	if text != "" {
		l.track.Reset()
	}
	return text
}

// fitted is the palette for the terminal as it is now.
func (l *Live) fitted() Palette {
	width, _ := l.size()
	return Palette{On: l.palette.On, Width: width}
}

// Report takes a report in; it is seen at the next redraw.
func (l *Live) Report(r controllers.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(l.track.Report(r))
}

// Tree takes in the tree after a turn.
func (l *Live) Tree(t *state.Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter = meter{}
	l.show(l.track.Tree(t))
}

// show keeps what ended for the list, and shows failures at once.
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

// Count shows work that takes long in the view.
func (l *Live) Count(task string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter.set(task, done, total, l.now())
}

// Note shows a line that stays.
func (l *Live) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(broken(Line(text), l.fitted().Width) + "\n")
}

// Close takes the view off the screen and leaves the list of what ran.
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

// draw brings the view up to date; above is put before it and stays.
func (l *Live) draw(above string) {
	if l.closed {
		return
	}
	width, height := l.size()
	l.screen.draw(above, l.lines(width, height), width, height)
}

// lines is the view: a headline and nodes, as many as the terminal has room for beside the line of the cursor.
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
	lines = append(lines, Cut(headline(v), width-1))
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

// headline counts: "6 of 9 nodes done, about 40s left, 2 running, 1 waiting". A failed node that is not tried again is not
// done.
func headline(v progress.View) string {
	s := fmt.Sprintf("%d of %s done", v.Done, Plural(v.Total, "node"))
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

// nodeLines are the rows of the view, in two columns: names take half of the width at most.
func nodeLines(nodes []progress.Node, now time.Time, width int) []string {
	lines := make([]string, len(nodes))
	column := 0
	for i, n := range nodes {
		lines[i] = nodeName(n.Owner, n.Name, max(width/2, 10))
		column = max(column, Width(lines[i]))
	}
	for i, n := range nodes {
		pad := strings.Repeat(" ", column-Width(lines[i])+2)
		lines[i] = Cut("  "+lines[i]+pad+doing(n, now), width)
	}
	return lines
}

// nodeName is "dag/checks build", in at most width columns: of a long name the node is kept as far as possible.
func nodeName(owner, name string, width int) string {
	const shortest = 6
	owner, name = Line(owner), Line(name)
	if room := width - Width(name) - 1; Width(owner) > room {
		owner = Cut(owner, max(room, shortest))
	}
	return Cut(owner+" "+name, width)
}

// doing says in a few words what a node does.
func doing(n progress.Node, now time.Time) string {
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
		return s
	case n.Due.After(now):
		return attempt + " in " + Age(n.Due.Sub(now))
	case !n.Due.IsZero():
		return attempt + " is due"
	}
	return Line(n.Message)
}

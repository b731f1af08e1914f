package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
)

// Progress shows a run while it happens. Methods are safe for concurrent use.
type Progress interface {
	// Report is called with each report on a node.
	Report(settle.Report)
	// Tree is called with the tree after a turn; callers must not change it. It shows the outcome of earlier failures.
	Tree(*state.Tree)
	// Count shows the progress of long counted work, such as "read" or "write"; it may be called often. A smaller done
	// restarts the count. The work is over at the next task or tree, or when done is total.
	Count(task string, done, total int)
	// Note shows a permanent line: a warning, a commit.
	Note(text string)
	// Close ends the view. Later calls show nothing.
	Close()
}

// Silent shows nothing.
type Silent struct{}

// Report does nothing.
func (Silent) Report(settle.Report) {}

// Tree does nothing.
func (Silent) Tree(*state.Tree) {}

// Count does nothing.
func (Silent) Count(string, int, int) {}

// Note does nothing.
func (Silent) Note(string) {}

// Close does nothing.
func (Silent) Close() {}

// Run shows a run: its progress, and with Talk also what clarifications say.
type Run struct {
	Progress
	Warnings io.Writer // gets warnings where Progress shows nothing; nil: Progress shows them
	Talk     bool
}

// Report shows a report of the performer about a node.
func (v Run) Report(r settle.Report) {
	v.Progress.Report(r)
	if r.Kind == settle.Finished && r.Why != "" {
		v.Note(r.Why)
	}
}

// Said shows a clarification event.
func (v Run) Said(c *settle.Clarified) {
	if v.Talk {
		for _, line := range talkLines(c) {
			v.Note(line)
		}
	}
}

// Missed shows the number of events that are not shown.
func (v Run) Missed(n int) {
	if v.Talk {
		v.Note(fmt.Sprintf("… and %d more about questions; \"reconcile events\" and \"reconcile get clarificationrequests\" list them", n))
	}
}

// Warn shows a problem during the run.
func (v Run) Warn(text string) {
	if v.Warnings == nil {
		v.Note(text)
		return
	}
	fmt.Fprintln(v.Warnings, Text(text))
}

// countEvery is the time between two lines about counted work.
const countEvery = 3 * time.Second

// Lines shows one plain line for each start and end, and the output of failed nodes. It is for logs, pipes and CI. W and
// Now must be set.
type Lines struct {
	W       io.Writer
	Palette Palette
	Now     func() time.Time

	mu     sync.Mutex
	track  progress.Tracker
	events eventLines
	meter  meter
	told   time.Time // time of the last line about the meter, or the start of its work
	closed bool
}

// Report shows the tracked report of an effect as lines, such as "12:03:04 dag/checks build Succeeded 1.2s". The time
// is in UTC, as in the statuses.
func (l *Lines) Report(r settle.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(l.track.Report(r))
}

// Tree tracks the failures of a tree, and shows the lines about those that have an outcome now.
func (l *Lines) Tree(t *state.Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(l.track.Tree(t))
}

// Count sets the meter to the progress of a task, and writes its line from time to time.
func (l *Lines) Count(task string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Now()
	if l.meter.set(task, done, total, now) {
		l.told = now
	}
	if now.Sub(l.told) >= countEvery {
		l.told = now
		l.write(l.meter.line(now))
	}
}

// Note writes text as a line.
func (l *Lines) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(Line(text))
}

// Close writes the lines of tracked failures whose outcome is still unknown.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(l.track.Flush())
	l.closed = true
}

func (l *Lines) show(events []progress.Event) {
	for _, e := range events {
		if e.At.IsZero() {
			e.At = l.Now()
		}
		for _, line := range l.events.of(l.Palette, e) {
			l.write(line)
		}
	}
}

func (l *Lines) write(line string) {
	if !l.closed {
		fmt.Fprintln(l.W, line)
	}
}

// Limits of shown failures.
const (
	tailLines    = 20 // of the output of one node
	fullFailures = 10 // shown with their output; others take one line each
)

// eventLines formats events as lines. Only the first failures are shown with their output.
type eventLines struct{ failures int }

func (l *eventLines) of(p Palette, e progress.Event) []string {
	lines := []string{eventLine(p, e)}
	if !e.Final {
		return lines
	}
	if e.Output == "" && e.Log == "" && strings.HasPrefix(e.Owner, "dag/") { // there is nothing that logs could print
		return append(lines, "  next: reconcile describe "+Line(e.Owner)+" "+Line(e.Name))
	}
	if l.failures++; l.failures > fullFailures {
		e.Output, e.Log = "", ""
	}
	return append(lines, progressFailure(e.Owner, e.Name, e.Output, e.Log)...)
}

// progressFailure describes a failed node: the end of its output, the path of the log, and the next command.
func progressFailure(owner, node, output, log string) []string {
	var lines []string
	for _, line := range outputTail(output, tailLines) {
		lines = append(lines, "    "+line)
	}
	if log != "" {
		lines = append(lines, "  log:  "+Line(log))
	}
	return append(lines, "  next: reconcile logs "+Line(owner)+" "+Line(node))
}

// eventLine formats an event as one line, wrapped on a narrow terminal.
func eventLine(p Palette, e progress.Event) string {
	head, state := fmt.Sprintf("%s %s %s ", e.At.UTC().Format(time.TimeOnly), Line(e.Owner), Line(e.Name)), Line(cmp.Or(e.Verdict, e.State))
	if e.Step != "" && e.Step != e.Name { // that of a session has the name of the step
		head += e.Step + " "
	}
	line := broken(head+state+afterState(e), p.Width)
	if strings.HasPrefix(line, head+state) {
		line = head + p.Paint(stateColor(state), state) + line[len(head+state):]
	}
	return line
}

// afterState describes how long the attempt of an event took, how it ended, and what follows.
func afterState(e progress.Event) string {
	s := ""
	if e.Took > 0 {
		s += " " + Age(e.Took)
	}
	if e.Message != "" {
		s += ": " + Line(e.Message)
	}
	switch {
	case e.Again:
		s += fmt.Sprintf("; attempt %d of %d follows", e.Attempt+1, e.Attempts)
		if in := e.Due.Sub(e.At); in > 0 {
			s += " in " + Age(in)
		}
	case e.Final && e.Attempts > 1:
		s += fmt.Sprintf(" (attempt %d of %d)", e.Attempt, e.Attempts)
	}
	return s
}

// outputTail returns the last n lines of a command's output, cleaned; none for empty output.
func outputTail(output string, n int) []string {
	output = strings.TrimRight(output, "\r\n")
	if output == "" {
		return nil
	}
	lines := strings.Split(Text(output), "\n")
	return lines[max(len(lines)-n, 0):]
}

// meter is counted work, with an estimate of the remaining time at the present pace.
type meter struct {
	task        string
	done, total int
	began, last time.Time
}

// set updates the progress, and reports whether new work starts.
func (m *meter) set(task string, done, total int, now time.Time) (begins bool) {
	begins = m.began.IsZero() || task != m.task || done < m.done
	if begins {
		m.began = now
	}
	m.task, m.done, m.total, m.last = task, done, total, now
	return begins
}

func (m *meter) line(now time.Time) string {
	s := fmt.Sprintf("%s: %s of %s done", Line(m.task), Grouped(m.done), Grouped(m.total))
	if m.done > 0 && m.done < m.total {
		left := time.Duration(float64(now.Sub(m.began)) / float64(m.done) * float64(m.total-m.done))
		s += ", about " + left.Round(time.Second).String() + " left"
	}
	return s
}

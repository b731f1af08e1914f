package render

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Transition is one thing that happened to a node during a run.
type Transition struct {
	At    time.Time
	Owner string // "dag/checks"
	Node  string
	// State is the node's new state: Queued, Running, Succeeded, Failed, …
	State string
	// Took is how long a finished run took; Message is why it did not succeed, in a line.
	Took    time.Duration
	Message string
	// Done and Total count the nodes of the owner that are done, and all.
	Done, Total int
}

// Progress shows a run while it happens. Methods may be called from several goroutines.
type Progress interface {
	Event(Transition)
	// Note shows a line that stays: a warning, a commit.
	Note(text string)
	// Close takes a live view off the screen. Nothing is shown after it.
	Close()
}

// Silent shows nothing.
type Silent struct{}

// Event does nothing.
func (Silent) Event(Transition) {}

// Note does nothing.
func (Silent) Note(string) {}

// Close does nothing.
func (Silent) Close() {}

// Lines shows one plain line for each start and end. It is for what is no terminal: logs, pipes, CI.
type Lines struct {
	W       io.Writer
	Palette Palette
	mu      sync.Mutex
}

// Event writes "12:03:04 dag/checks build Succeeded 1.2s". Times are in UTC, as in the statuses.
func (l *Lines) Event(t Transition) { l.write(transitionLine(l.Palette, t)) }

// Note writes text as a line.
func (l *Lines) Note(text string) { l.write(Line(text)) }

// Close does nothing: what was written stands.
func (l *Lines) Close() {}

func (l *Lines) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.W, line)
}

func transitionLine(p Palette, t Transition) string {
	s := fmt.Sprintf("%s %s %s %s", t.At.UTC().Format(time.TimeOnly), Line(t.Owner), Line(t.Node),
		p.Paint(StateColor(t.State), Line(t.State)))
	if t.Took > 0 {
		s += " " + Age(t.Took)
	}
	if t.Message != "" {
		s += ": " + Line(t.Message)
	}
	return s
}

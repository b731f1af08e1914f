package main

import (
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
)

// sink shows on stderr what a run has to say.
type sink struct {
	render.Progress
	quiet func(text string) // prints a warning where progress shows nothing; nil: progress shows it
	talk  bool              // show what is said in clarifications
}

// Report shows what the performer reports of a node.
func (s sink) Report(r controllers.Report) {
	s.Progress.Report(r)
	if r.Kind == controllers.Finished && r.Why != "" {
		s.Note(r.Why)
	}
}

// Said shows what was said in a clarification.
func (s sink) Said(c *controllers.Clarified) {
	if !s.talk {
		return
	}
	for _, line := range render.TalkLines(c) {
		s.Note(line)
	}
}

// Missed shows that more was said.
func (s sink) Missed(n int) {
	if s.talk {
		s.Note(fmt.Sprintf("%d more events about questions; \"reconcile events\" lists them", n))
	}
}

// Warn shows what is wrong while the run goes on. It is no progress: --quiet does not silence it.
func (s sink) Warn(text string) {
	if s.quiet != nil {
		s.quiet(text)
		return
	}
	s.Note(text)
}

// view shows a run on stderr; talk shows what is said in clarifications.
func (a *app) view(talk bool) ops.View {
	out := sink{Progress: a.progress(), talk: talk}
	if a.global.quiet {
		out.quiet = func(text string) { fmt.Fprintln(a.stderr, clean(text)) }
	}
	return out
}

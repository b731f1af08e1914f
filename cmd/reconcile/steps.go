package main

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// steps tells of steps that take long how much of them is done, and how long the rest will take. It belongs to one goroutine.
type steps struct {
	note func(string)
	now  func() time.Time

	step  string
	began time.Time // of the step
	said  time.Time // when something was said last, or the step began
	done  int
}

// sayEvery is how long a step takes before something is said of it, and the time to the next line.
const sayEvery = 3 * time.Second

func newSteps(note func(string), now func() time.Time) *steps { return &steps{note: note, now: now} }

// tell is told, as often as one likes, that so much of a step is done. A step that is told of with less done began anew.
func (s *steps) tell(step string, done, total int) {
	if step != s.step || done < s.done || s.began.IsZero() {
		s.step, s.began = step, s.now()
		s.said = s.began
	}
	s.done = done
	now := s.now()
	if now.Sub(s.said) < sayEvery {
		return
	}
	s.said = now
	text := fmt.Sprintf("%s: %s of %s done", step, render.Grouped(done), render.Grouped(total))
	if done > 0 && done < total {
		left := time.Duration(float64(now.Sub(s.began)) * float64(total-done) / float64(done))
		text += ", about " + left.Round(time.Second).String() + " left"
	}
	s.note(text)
}

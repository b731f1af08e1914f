package agentio

import (
	"fmt"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

const (
	// threadLimit bounds the characters of one thread, each turn's heading counted as turnCost.
	threadLimit = 8000
	turnCost    = 40
)

// turns writes a thread: who said what.
func (d *promptDocument) turns(thread []schemas.ClarificationTurn) {
	for _, t := range shortThread(thread) {
		d.say(fmt.Sprintf("%s of %s, round %d:\n", label(t.Type), label(t.From), t.Round))
		d.quote(t.Body)
	}
}

func (d *promptDocument) answered(all []Answered) {
	for i := range all {
		a := &all[i]
		what := "clarification " + label(a.ID)
		d.begin(what)
		d.say(fmt.Sprintf("asked of %s, now %s, about:\n", label(a.To), label(a.Status)))
		d.quote(a.Topic)
		if a.isSummarized() {
			d.say("in short:\n")
			d.quote(a.Summary)
		} else {
			d.turns(a.Thread)
		}
		d.end(what)
	}
}

// shortThread removes the middle of a thread that is too long for a prompt, and marks the gap.
func shortThread(thread []schemas.ClarificationTurn) []schemas.ClarificationTurn {
	total := 0
	for i := range thread {
		total += turnSize(&thread[i])
	}
	if total <= threadLimit {
		return thread
	}
	note := fmt.Sprintf("[%d characters of this thread are left out here]", total-threadLimit)
	var out []schemas.ClarificationTurn
	at := 0
	for _, t := range thread {
		size := turnSize(&t)
		front := threadLimit/2 - at                 // what may stay of the turn's beginning
		back := at + size - (total - threadLimit/2) // and of its end
		at += size
		if front >= size || back >= size {
			out = append(out, t)
			continue
		}
		kept := keep(t.Body, front-turnCost, back)
		if note == "" && back <= 0 {
			continue // wholly in the omitted part
		}
		t.Body = kept[0] + note + kept[1]
		note = ""
		out = append(out, t)
	}
	return out
}

func turnSize(t *schemas.ClarificationTurn) int { return turnCost + utf8.RuneCountInString(t.Body) }

// keep returns the first front and the last back characters of s, which has more.
func keep(s string, front, back int) [2]string {
	r := []rune(s)
	front = min(max(front, 0), len(r))
	back = min(max(back, 0), len(r)-front)
	return [2]string{string(r[:front]), string(r[len(r)-back:])}
}

// Answered is a clarification in the input of agents that continue the work.
type Answered struct {
	ID      string `json:"id"` // CLR-42-001
	To      string `json:"to"` // who was asked
	Topic   string `json:"topic"`
	Status  string `json:"status"`            // one of the schemas.Clarification constants
	Summary string `json:"summary,omitempty"` // once it is resolved, it replaces the thread
	// Thread is passed in full while the clarification is open, up to threadLimit characters.
	Thread []schemas.ClarificationTurn `json:"thread,omitempty"`
}

// isSummarized reports whether the summary replaces the thread.
func (a *Answered) isSummarized() bool {
	return a.Status == schemas.ClarificationResolved && a.Summary != ""
}

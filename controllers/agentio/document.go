package agentio

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

const (
	// quoted begins every quoted line.
	quoted = "| "
	// threadLimit bounds the characters of one thread, each turn's heading counted as turnCost.
	threadLimit = 8000
	turnCost    = 40
	// labelLimit bounds the bytes of a name or path in a heading.
	labelLimit = 200
)

// document is a prompt while it is written: sentences of ours, and blocks of quoted lines.
type document struct{ strings.Builder }

func (d *document) say(text string) { d.WriteString(text) }

// begin and end enclose a block. what consists of labels only.
func (d *document) begin(what string) { d.say("--- begin " + what + " ---\n") }
func (d *document) end(what string)   { d.say("--- end " + what + " ---\n") }

// block is a block of one text, left out when that is blank.
func (d *document) block(what, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	d.begin(what)
	d.quote(text)
	d.end(what)
}

// quote writes text line by line, each marked as quoted.
func (d *document) quote(text string) {
	for line := range strings.SplitSeq(Plain(text), "\n") {
		d.say(strings.TrimRight(quoted+line, " ") + "\n")
	}
}

// turns writes a thread: who said what.
func (d *document) turns(thread []schemas.ClarificationTurn) {
	for _, t := range shortThread(thread) {
		d.say(fmt.Sprintf("%s of %s, round %d:\n", label(t.Type), label(t.From), t.Round))
		d.quote(t.Body)
	}
}

func (d *document) answered(all []Answered) {
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

// Plain cleans a text so that it is safe to quote: it maps it to valid UTF-8, with lines that end in \n only, and
// without control characters except tabs, nor those that reorder or hide the text around them.
func Plain(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case strings.ContainsRune("\r\v\f\u0085\u2028\u2029", r):
			return '\n'
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff':
			return -1
		}
		return r
	}, text)
	return strings.TrimRight(text, "\n")
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

package agentio

import (
	"strings"
	"unicode"
)

const (
	// quoted begins every quoted line.
	quoted = "| "
	// labelLimit bounds the bytes of a name or path in a heading.
	labelLimit = 200
)

// promptDocument is a prompt while it is written: sentences of ours, and blocks of quoted lines.
type promptDocument struct{ strings.Builder }

func (d *promptDocument) say(text string) { d.WriteString(text) }

// begin and end enclose a block. what consists of labels only.
func (d *promptDocument) begin(what string) { d.say("--- begin " + what + " ---\n") }
func (d *promptDocument) end(what string)   { d.say("--- end " + what + " ---\n") }

// block is a block of one text, left out when that is blank.
func (d *promptDocument) block(what, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	d.begin(what)
	d.quote(text)
	d.end(what)
}

// quote writes text line by line, each marked as quoted.
func (d *promptDocument) quote(text string) {
	for line := range strings.SplitSeq(Plain(text), "\n") {
		d.say(strings.TrimRight(quoted+line, " ") + "\n")
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

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"reconcile.dev/reconcile/schemas"
)

// BodyLimit is the most that a body may have, in UTF-16 units: GitHub's limit without room for the marker.
const BodyLimit = 65_536 - markerRoom

const (
	markerRoom = 400 // a key has at most some 150 characters, its MAC 32
	noteRoom   = 600 // for the foot, and for saying that something was left out
)

// Body is a comment that is being written, paragraph by paragraph.
type Body struct {
	b     strings.Builder
	room  int    // left of the limit, in UTF-16 units
	cut   bool   // something was left out
	foot  string // where the whole can be read
	whole string // the link to the file that has everything; "" for none
}

// linkMarks escapes what ends an address in Markdown, or may.
var linkMarks = strings.NewReplacer("(", "%28", ")", "%29", "'", "%27", "*", "%2A")

// block adds lines that belong together, after an empty line. If they do not fit, it drops the rest of the lines; if
// whole is set, all of them.
func (b *Body) block(lines []string, whole bool) {
	if whole {
		lines = []string{strings.Join(lines, "\n")}
	}
	for i, l := range lines {
		if i == 0 && b.b.Len() > 0 {
			l = "\n\n" + l
		} else if i > 0 {
			l = "\n" + l
		}
		n := bodyUnits(l)
		if n > b.room {
			b.cut = true
			return
		}
		b.room -= n
		b.b.WriteString(l)
	}
}

// Paragraph adds a paragraph of ours.
func (b *Body) Paragraph(format string, args ...any) {
	b.block([]string{fmt.Sprintf(format, args...)}, true)
}

// Quoted adds a text to the body as a Markdown quotation, cut if it is too long; nothing if the text is blank.
func (b *Body) Quoted(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	lines, cut := quoteText(text)
	b.cut = b.cut || cut
	b.block(lines, false)
}

// table adds a table. Cells are Markdown of one line.
func (b *Body) table(head []string, rows [][]string) {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
	lines := []string{line(head), "|" + strings.Repeat(" --- |", len(head))}
	for _, r := range rows {
		lines = append(lines, line(r))
	}
	b.block(lines, false)
}

// List adds a list of items under a heading; nothing without items.
func (b *Body) List(heading string, items []string) {
	if len(items) == 0 {
		return
	}
	b.Paragraph("**%s**", heading)
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = "- " + item
	}
	b.block(lines, false)
}

// done is the whole text.
func (b *Body) done() string {
	if b.cut {
		fmt.Fprintf(&b.b, "\n\n_This was cut, being longer than a comment may be._")
		if b.whole != "" {
			fmt.Fprintf(&b.b, " All of it: %s.", b.whole)
		}
	}
	fmt.Fprintf(&b.b, "\n\n%s", b.foot)
	return b.b.String()
}

// more says how much a table leaves out.
func (b *Body) more(all int) {
	if all > pullRows {
		b.Paragraph("… and %d more: `reconcile plan --base` prints all of them.", all-pullRows)
	}
}

// bodyRows is as many rows of a table as are shown, and how many there are more.
func bodyRows(rows [][]string) [][]string {
	more := len(rows) - mostNodes
	if more <= 0 {
		return rows
	}
	last := make([]string, len(rows[0]))
	last[0] = fmt.Sprintf("… and %d more", more)
	return append(slices.Clip(rows[:mostNodes]), last)
}

// progress shows the progress of an object; nothing for one without tasks.
func (b *Body) progress(p schemas.Progress) {
	if p.Total > 0 {
		b.Paragraph("%d of %d tasks are done.", p.Done, p.Total)
	}
}

// bodyUnits is the length of a text as GitHub's limit counts it at most: in UTF-16.
func bodyUnits(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

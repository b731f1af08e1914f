package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color Color
}

// Table collects rows and writes them in aligned columns. On a terminal a row is one line: text that does not fit is cut.
type Table struct {
	Palette Palette
	Indent  string
	// Wrap breaks the last column at words instead of cutting it.
	Wrap   bool
	header []Cell
	rows   [][]Cell
}

// NewTable returns a table with bold header cells for the heads; none means a table without a header.
func NewTable(p Palette, heads ...string) *Table {
	t := &Table{Palette: p}
	for _, h := range heads {
		t.header = append(t.header, Cell{Text: h, Color: Bold})
	}
	return t
}

// Row adds a row of plain cells.
func (t *Table) Row(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, s := range texts {
		cells[i].Text = s
	}
	t.Cells(cells...)
}

// Cells adds a row.
func (t *Table) Cells(cells ...Cell) {
	for i := range cells {
		cells[i].Text = Line(cells[i].Text)
	}
	t.rows = append(t.rows, cells)
}

// Len returns the number of rows of the table, without the header.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table; a table without rows writes nothing. The last cell of a row is not padded.
func (t *Table) Write(w io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	if len(t.header) > 0 {
		rows = append([][]Cell{t.header}, rows...)
	}
	widths := t.fit(columnWidths(rows))
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(t.Indent)
		t.line(&b, row, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) line(b *strings.Builder, row []Cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	used := textWidth(t.Indent)
	for i, c := range row[:last+1] {
		if t.wraps(i, widths) {
			t.wrapped(b, c, used)
			break
		}
		if t.Palette.Width > 0 {
			c.Text = Cut(c.Text, max(min(widths[i], t.Palette.Width-used), 0))
		}
		b.WriteString(t.Palette.Paint(c.Color, c.Text))
		used += widths[i] + 2
		if i < last && (t.Palette.Width == 0 || used < t.Palette.Width) {
			b.WriteString(strings.Repeat(" ", widths[i]-textWidth(c.Text)+2))
		}
	}
	b.WriteByte('\n')
}

// wraps reports whether a column is wrapped at words.
func (t *Table) wraps(column int, widths []int) bool {
	return t.Wrap && t.Palette.Width > 0 && column == len(widths)-1
}

// wrapped writes the last cell of a line, which starts at a column, wrapped into lines.
func (t *Table) wrapped(b *strings.Builder, c Cell, column int) {
	for i, line := range Wrap(c.Text, max(t.Palette.Width-column, narrowest)) {
		if i > 0 {
			b.WriteString("\n" + strings.Repeat(" ", column))
		}
		b.WriteString(t.Palette.Paint(c.Color, line))
	}
}

// narrowest is the width below which a column is not made narrower to fit a terminal.
const narrowest = 10

// fit makes columns narrower until a line fits the terminal: the last one first, then the widest.
func (t *Table) fit(widths []int) []int {
	over := textWidth(t.Indent) + 2*(len(widths)-1) - t.Palette.Width
	for _, w := range widths {
		over += w
	}
	if t.Palette.Width == 0 || over <= 0 {
		return widths
	}
	last := len(widths) - 1
	cut := min(over, max(widths[last]-narrowest, 0))
	widths[last] -= cut
	for over -= cut; over > 0; over-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return widths
}

func columnWidths(rows [][]Cell) []int {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], textWidth(c.Text))
		}
	}
	return widths
}

// textWidth returns the display width of s: how many columns of a terminal it takes.
func textWidth(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Cut cuts s to a width in columns, with an ellipsis where something is missing.
func Cut(s string, width int) string {
	if textWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used += g.Width(); used > width-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// cutMiddle cuts s to a width of at least one column in its middle, so that names that begin alike stay different.
func cutMiddle(s string, width int) string {
	if textWidth(s) <= width {
		return s
	}
	head := Cut(s, max(width/2, 1))
	room, end, used := width-textWidth(head), s, textWidth(s)
	for g := uniseg.NewGraphemes(s); used > room && g.Next(); {
		used -= g.Width()
		_, to := g.Positions()
		end = s[to:]
	}
	return head + end
}

// text is a table as a string.
func (t *Table) text() string {
	var b strings.Builder
	t.Write(&b)
	return b.String()
}

func padLeft(s string, width int) string { return strings.Repeat(" ", max(width-len(s), 0)) + s }

// Age formats a duration in its one or two largest units, as kubectl does: 45s, 3m, 2h5m, 3d, 2y30d. Below ten seconds it
// shows tenths, below a second milliseconds.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day:
		return units(d, day, "d", time.Hour, "h")
	case d < 730*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return units(d, 365*day, "y", day, "d")
}

package render

import (
	"io"
	"slices"
	"strings"

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
	used := Width(t.Indent)
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
			b.WriteString(strings.Repeat(" ", widths[i]-Width(c.Text)+2))
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
	over := Width(t.Indent) + 2*(len(widths)-1) - t.Palette.Width
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
			widths[i] = max(widths[i], Width(c.Text))
		}
	}
	return widths
}

// Width returns the display width of s: how many columns of a terminal it takes.
func Width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Cut cuts s to a width in columns, with an ellipsis where something is missing.
func Cut(s string, width int) string {
	if Width(s) <= width {
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

// Wrap breaks text into lines of at most width columns, at spaces; a wider word has its own line.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		word = Line(word)
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

package render

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color Color
}

// Table collects rows and writes them in aligned columns.
type Table struct {
	Palette Palette
	Indent  string
	header  []Cell
	rows    [][]Cell
}

// NewTable returns a table with the given column heads; none means a table without a head line.
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

// Len counts the rows, without the head.
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
	widths := columnWidths(rows)
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
	for i, c := range row[:last+1] {
		b.WriteString(t.Palette.Paint(c.Color, c.Text))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-Width(c.Text)+2))
		}
	}
	b.WriteByte('\n')
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

// Width is how many columns s takes on a terminal.
func Width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Cut shortens s to at most width columns, with an ellipsis where something is missing.
func Cut(s string, width int) string {
	if Width(s) <= width {
		return s
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

// Wrap breaks text into lines of at most width columns, at spaces; a word that is wider stands alone.
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

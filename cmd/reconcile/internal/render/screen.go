package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// screen draws some lines of a terminal in place, the last ones above the cursor. It clears lines one by one: to clear the
// screen from a place on makes some terminals keep what was there in their history.
type screen struct {
	w     io.Writer
	lines []string // as drawn, at width
	width int
}

// draw replaces the lines, in one write so that they do not flicker; above is put before them and stays. Each line must be
// narrower than the terminal, and all of them together lower.
func (s *screen) draw(above string, lines []string, width, height int) {
	if above == "" && slices.Equal(lines, s.lines) && (width == s.width || len(lines) == 0) {
		return
	}
	var b strings.Builder
	up := min(rows(s.lines, width), max(height-1, 0))
	b.WriteString(move(up, 'A'))
	if above != "" || width != s.width || len(lines) < up {
		b.WriteString(strings.Repeat("\x1b[2K\x1b[1B", up))
		b.WriteString(move(up, 'A'))
	}
	b.WriteString(above)
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	s.lines, s.width = lines, width
	io.WriteString(s.w, b.String()) // a terminal that is gone is no reason to end a run
}

// move goes up or down by n rows, to their beginning.
func move(n int, way byte) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%d%c\r", n, way)
}

// rows is how many rows lines take on a terminal of some width, which has wrapped those that are wider since they were
// drawn.
func rows(lines []string, width int) int {
	n := 0
	for _, line := range lines {
		n += max((Width(line)+width-1)/max(width, 1), 1)
	}
	return n
}

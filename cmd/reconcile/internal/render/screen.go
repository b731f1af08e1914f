package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// screen redraws the last lines of a terminal in place, above the cursor. It clears lines individually: clearing the rest
// of the screen makes some terminals keep the old content in their history.
type screen struct {
	w     io.Writer
	lines []string // as drawn, at width
	width int
}

// draw replaces the lines, in one write to avoid flicker; above is printed permanently before them. Each line must be
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
	io.WriteString(s.w, b.String()) // a closed terminal does not end a run
}

// move goes up or down by n rows, to the start of the row.
func move(n int, way byte) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%d%c\r", n, way)
}

// rows returns how many rows the lines take on a terminal of this width, which may have wrapped wider lines since they were
// drawn.
func rows(lines []string, width int) int {
	n := 0
	for _, line := range lines {
		n += max((Width(line)+width-1)/max(width, 1), 1)
	}
	return n
}

func join(prefix, path string) string {
	if prefix == "" || prefix == "." {
		return path
	}
	return prefix + "/" + path
}

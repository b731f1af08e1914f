package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func units(d, large time.Duration, l string, small time.Duration, s string) string {
	if rest := d % large / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/large, l, rest, s)
	}
	return fmt.Sprintf("%d%s", d/large, l)
}

// EndLine adds a line feed to the end of a text, unless it is empty or has one.
func EndLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// wrapText breaks the lines of a text that are wider than width; the others stay as they are, indented or not.
func wrapText(s string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(Text(s), "\n"), "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " ")
		if textWidth(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, Wrap(line, width)...)
	}
	return lines
}

// Bytes writes a size as "123 bytes", "4.5 KB" or "12.0 MB", in powers of 1000.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return schemas.Count(int(n), "byte")
	case n < 1000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// GroupedPlural is Plural with the number formatted by Grouped: "12,345 nodes".
func GroupedPlural(n int, word string) string {
	return strings.Replace(schemas.Count(n, word), strconv.Itoa(n), Grouped(n), 1)
}

// Grouped formats n with commas between groups of three digits: 12,345.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// broken wraps a line at words to the width of a terminal; width 0: no terminal.
func broken(line string, width int) string {
	const indent = "    "
	if width == 0 || textWidth(line) <= width {
		return line
	}
	return strings.Join(Wrap(line, max(width-len(indent), 1)), "\n"+indent)
}

// Wrap breaks text into lines of at most width columns, at spaces; a wider word has its own line.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		word = Line(word)
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) > width:
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

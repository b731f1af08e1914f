package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Format formats the problem for people: the one-line form of [Problem.Error], the source line with a caret under the
// column, if they are known, and a line for each related place. No colours; every line but the first is indented; the result
// ends in a line end.
//
//	specs/dags/checks.yaml:14:15: spec.nodes[1].needs[0]: there is no node called "biuld"; did you mean "build"?
//	  14 |       needs: [biuld]
//	     |               ^
//	  specs/dags/checks.yaml:9:13: the first one
func (p Problem) Format() string {
	var b strings.Builder
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Error() + "\n")
	if p.Source != "" && p.Line > 0 {
		source, caret := excerpt(p.Source, p.Column)
		number := fmt.Sprint(p.Line)
		fmt.Fprintf(&b, "  %s | %s\n", number, source)
		if p.Column > 0 {
			fmt.Fprintf(&b, "  %s | %s^\n", strings.Repeat(" ", len(number)), strings.Repeat(" ", caret))
		}
	}
	for i, at := range p.Related {
		note := "see here"
		if i < len(p.Notes) {
			note = p.Notes[i]
		}
		fmt.Fprintf(&b, "  %s: %s\n", at, note)
	}
	return b.String()
}

// excerpt returns a line in its form on a terminal, with tabs as spaces, characters that move the cursor replaced
// and long lines cut around the column, and the width of the text before that column.
func excerpt(line string, column int) (shown string, caret int) {
	const before, most = 60, 110 // characters kept before the column, and in all
	text := []rune(line)
	at := min(max(column-1, 0), len(text))
	from := 0
	if len(text) > most && at > before {
		from = at - before
	}
	to := min(len(text), from+most)
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
		caret = 2
	}
	for i, r := range text[from:to] {
		s, width := visibleExcerpt(r)
		b.WriteString(s)
		if from+i < at {
			caret += width
		}
	}
	if to < len(text) {
		b.WriteString(" …")
	}
	return b.String(), caret
}

// visibleExcerpt is how a character is shown, and how many columns that takes.
func visibleExcerpt(r rune) (string, int) {
	switch {
	case r == '\t':
		return "    ", 4
	case unicode.In(r, unicode.Mn, unicode.Me):
		return string(r), 0
	case !unicode.IsPrint(r):
		return "\uFFFD", 1
	case isWide(r):
		return string(r), 2
	}
	return string(r), 1
}

// wide are the blocks whose characters take two columns: the larger ones of Unicode's EastAsianWidth table (W and F)
// and the emoji. For a caret, near enough is right.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115F, Stride: 1}, {Lo: 0x2E80, Hi: 0x303E, Stride: 1}, {Lo: 0x3041, Hi: 0x33FF, Stride: 1},
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xA000, Hi: 0xA4CF, Stride: 1},
		{Lo: 0xAC00, Hi: 0xD7A3, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}, {Lo: 0xFE30, Hi: 0xFE6F, Stride: 1},
		{Lo: 0xFF00, Hi: 0xFF60, Stride: 1}, {Lo: 0xFFE0, Hi: 0xFFE6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1F300, Hi: 0x1F64F, Stride: 1}, {Lo: 0x1F680, Hi: 0x1F6FF, Stride: 1}, {Lo: 0x1F900, Hi: 0x1F9FF, Stride: 1},
		{Lo: 0x20000, Hi: 0x3FFFD, Stride: 1},
	},
}

func isWide(r rune) bool { return r >= 0x1100 && unicode.Is(wide, r) }

// pathText writes a path as users read it: spec.nodes[2].needs[0], spec.env["a b"].
func pathText(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if !isEnvName(strings.ReplaceAll(step, "-", "_")) {
				b.WriteString("[" + strconv.Quote(step) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// Count returns n with the noun, in the plural unless n is 1, for messages: "1 file", "3 files", "2 processes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Shorten joins the first n words with commas, and says how many more there are: "a, b and 3 more".
func Shorten(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// AndOthers says how many others there are, for the end of a list that names one: "" for none.
func AndOthers(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and another one"
	}
	return fmt.Sprintf(" and %d others", n)
}

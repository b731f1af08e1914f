package schemas

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Lines are those from one to another, both counted from 1 and both meant.
type Lines struct{ From, To int }

// LinesOf finds the lines of the items of a list in a file that Decode read; field is the list's path as for [Locate]. It
// is nil if the list does not exist.
func LinesOf(path string, src []byte, field ...any) []Lines {
	s := newSource(path)
	root := s.parse(src, len(src))
	if root == nil {
		return nil
	}
	items := root.at(field)
	if items == nil || items.form != list {
		return nil
	}
	lines := strings.Split(string(s.text), "\n")
	out := make([]Lines, len(items.items))
	for i, item := range items.items {
		out[i] = Lines{item.line, item.lastLine(lines)}
	}
	return out
}

// lastLine is where a value ends: below its last part there may be more of a text, which is further to the right.
func (v *value) lastLine(lines []string) int {
	last := v.line
	for _, f := range v.fields {
		last = max(last, f.line, f.value.lastLine(nil))
	}
	for _, item := range v.items {
		last = max(last, item.lastLine(nil))
	}
	for i := last; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if text == "" || text == "\r" {
			continue
		}
		if len(lines[i])-len(text) < v.col {
			break
		}
		last = i + 1
	}
	return last
}

// Locate parses the source of a spec file again and returns the place of a field, with line and column, and the text of that
// line. It is for problems that show only when the whole tree is known. field is a path below the root of the document:
// "spec", "nodes", 3, "needs", 0. If the field does not exist, the place is that of the nearest existing ancestor. source is
// the line's text.
func Locate(path string, src []byte, field ...any) (at Place, source string) {
	at = Place{Path: path}
	s := newSource(path)
	root := s.parse(src, len(src))
	if root == nil {
		return at, ""
	}
	at.Line, at.Column = root.position(field)
	return at, lineText(string(s.text), at.Line)
}

// lineSpan is where a line of text, counted from 1, begins and ends; 0, 0 for none.
func lineSpan(text string, line int) (start, end int) {
	for n := 1; n < line; n++ {
		i := strings.IndexByte(text[start:], '\n')
		if i < 0 {
			return 0, 0
		}
		start += i + 1
	}
	if line < 1 {
		return 0, 0
	}
	if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
		return start, start + i
	}
	return start, len(text)
}

// placeOf converts an offset to line and column.
func placeOf(b []byte, at int) (line, col int) {
	at = min(max(at, 0), len(b))
	start := bytes.LastIndexByte(b[:at], '\n') + 1
	return 1 + bytes.Count(b[:start], []byte("\n")), 1 + utf8.RuneCount(b[start:at])
}

// lines finds the places of offsets that mostly ascend without starting over each time.
type lines struct {
	text             []byte
	at, line, column int // column counts from 0 here
}

func newLines(b []byte) *lines { return &lines{text: b, line: 1} }

// place is the place of an offset.
func (l *lines) place(at int) (line, col int) {
	if at < l.at {
		l.at = bytes.LastIndexByte(l.text[:at], '\n') + 1
		l.line, l.column = 1+bytes.Count(l.text[:l.at], []byte("\n")), 0
	}
	for l.at < at && l.at < len(l.text) {
		if l.text[l.at] == '\n' {
			l.line++
			l.column = 0
			l.at++
			continue
		}
		_, size := utf8.DecodeRune(l.text[l.at:])
		l.column++
		l.at += size
	}
	return l.line, l.column + 1
}

// lineText returns a line of text, counted from 1, without its end.
func lineText(s string, line int) string {
	for n := 1; n < line; n++ {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			return ""
		}
		s = s[i+1:]
	}
	if line < 1 {
		return ""
	}
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// The lines that git writes around the two sides of a conflict begin with these.
var conflictMarks = [3][]byte{[]byte("<<<<<<< "), []byte("======="), []byte(">>>>>>> ")}

// ConflictHint says what to do about a file that a merge left in conflict.
const ConflictHint = "\"git status\" lists what is in conflict: settle what stands between the markers, remove them, and \"git add\" the file"

// ConflictLine returns the line of the first conflict that a git merge left in a text; 0 if it has no conflict.
func ConflictLine(text []byte) int {
	first, next, n := 0, 0, 0
	for line := range bytes.Lines(text) {
		n++
		if !bytes.HasPrefix(line, conflictMarks[next]) {
			continue
		}
		if next == 0 {
			first = n
		}
		if next++; next == len(conflictMarks) {
			return first
		}
	}
	return 0
}

// conflict reports the markers instead of the problems that they cause in the text.
func (s *source) conflict(line int) {
	s.problems, s.unsaid = s.problems[:0], 0
	s.fail("merge-conflict", line, 1, "", "the file holds the conflict markers of a git merge").hint(ConflictHint)
}

package schemas

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a document, in addition to its size in bytes.
const (
	maxDepth  = 64
	maxValues = 100_000
	// maxFields bounds one set of fields. The parsers used, and this one, look keys up one by one.
	maxFields = 1000
	// maxProblems bounds the reported problems of one file: more are not useful, and a hostile file must not fill the
	// memory.
	maxProblems = 100
)

// source is one file while it is decoded: its text, and its problems.
type source struct {
	path     string
	state    string // the folder of observed state; empty: the default
	text     []byte // after the gate: UTF-8, no byte order mark, line ends \n
	unsaid   int    // errors beyond maxProblems
	ref      Ref
	problems []Problem
	values   int  // counted so far
	toml     bool // fields are called as in the TOML form
	store    *valueStore
}

func newSource(path string) *source { return &source{path: path} }

// fail reports an error at a position; line 0 means the whole file.
func (s *source) fail(code string, line, col int, field, format string, args ...any) *Problem {
	if len(s.problems) >= maxProblems {
		s.unsaid++
		return new(Problem)
	}
	s.problems = append(s.problems, Problem{
		Place:    Place{Path: s.path, Line: line, Column: col},
		Severity: Error, Code: code, Field: field, Message: fmt.Sprintf(format, args...),
	})
	return &s.problems[len(s.problems)-1]
}

// near adds a suggestion from a list of words, if one is near.
func (p *Problem) near(word string, words []string) *Problem {
	if p.Message == "" {
		return p // beyond maxProblems: it is not reported
	}
	if n := Nearest(word, words); n != "" {
		p.Suggestion = fmt.Sprintf("did you mean %q?", n)
	}
	return p
}

// hint sets the suggestion.
func (p *Problem) hint(format string, args ...any) *Problem {
	p.Suggestion = fmt.Sprintf(format, args...)
	return p
}

// also adds a related place of the same file.
func (p *Problem) also(line, col int, note string) *Problem {
	p.Related = append(p.Related, Place{Path: p.Path, Line: line, Column: col})
	p.Notes = append(p.Notes, note)
	return p
}

// gate accepts only text that every parser reads alike, and normalises it: one byte order mark is dropped, CRLF
// becomes LF. It reports a refused character, with the place, and then returns false.
func (s *source) gate(src []byte, limit int) bool {
	if limit > 0 && len(src) > limit {
		s.fail("too-large", 0, 0, "", "the file has %d bytes, at most %d are read", len(src), limit).
			hint("split it, or raise limits.fileSize in %s", SettingsPath)
		return false
	}
	if bytes.HasPrefix(src, []byte{0xFF, 0xFE}) || bytes.HasPrefix(src, []byte{0xFE, 0xFF}) {
		s.fail("encoding", 1, 1, "", "the file is UTF-16").hint("save it as UTF-8")
		return false
	}
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	if bytes.IndexByte(src, '\r') >= 0 {
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	}
	s.text = src
	if at, why := badByte(src); at >= 0 {
		line, col := place(src, at)
		s.text = nil
		s.fail("encoding", line, col, "", "%s", why).hint("save the file as plain UTF-8 text")
		return false
	}
	if at := crowded(src); at >= 0 {
		line, col := place(src, at)
		s.fail("too-many", line, col, "", "the file has more than %d values", maxValues).hint("split it")
		return false
	}
	return true
}

// full reports, once for each set of fields, that it has as many as it may have.
func (s *source) full(v *value, line, col int, path []any) bool {
	if len(v.fields) < maxFields {
		return false
	}
	if !v.bad {
		v.bad = true
		s.fail("too-many", line, col, pathText(path), "there are more than %d fields", maxFields).hint("make it a list")
	}
	return true
}

// crowded finds where a text certainly has more values than a document may have, going by what separates them, or
// returns -1. Parsers build all of them before anyone can count, at some hundred bytes each. Long texts have separators
// too, but not one in ten characters.
func crowded(b []byte) int {
	if len(b) <= maxValues {
		return -1
	}
	n := 0
	for i, c := range b {
		switch c {
		case '\n', ',', '[', '{':
			n++
		case ' ':
			if i > 0 && (b[i-1] == '-' || b[i-1] == '?') {
				n++
			}
		}
		if n > maxValues {
			return i
		}
	}
	return -1
}

// badByte finds the first byte that no text file has, or -1.
func badByte(b []byte) (at int, why string) {
	for i := 0; i < len(b); {
		c := b[i]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			if c == '\r' {
				return i, "a carriage return stands alone; lines end with LF or CRLF"
			}
			return i, fmt.Sprintf("contains the control character %U", c)
		}
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return i, fmt.Sprintf("is not UTF-8: there is a byte 0x%02X that does not belong here", c)
		case r == '\uFEFF':
			return i, "contains a byte order mark inside"
		case r <= 0x9F:
			return i, fmt.Sprintf("contains the control character %U", r)
		}
		i += size
	}
	return -1, ""
}

// place converts an offset to line and column.
func place(b []byte, at int) (line, col int) {
	at = min(max(at, 0), len(b))
	start := bytes.LastIndexByte(b[:at], '\n') + 1
	return 1 + bytes.Count(b[:start], []byte("\n")), 1 + runes(b[start:at])
}

// runes counts characters; a byte that belongs to none counts as one.
func runes(b []byte) int { return utf8.RuneCount(b) }

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

// finish sorts the problems by position, drops repetitions, and gives each its object and its line of source, unless a
// secret is on it.
func (s *source) finish() []Problem {
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Field, b.Field),
			strings.Compare(a.Message, b.Message))
	})
	s.problems = slices.CompactFunc(s.problems, func(a, b Problem) bool {
		return a.Place == b.Place && a.Code == b.Code && a.Field == b.Field && a.Message == b.Message
	})
	if s.unsaid > 0 {
		last := &s.problems[len(s.problems)-1]
		last.Notes = append(last.Notes, fmt.Sprintf("and %d more problems in this file", s.unsaid))
		last.Related = append(last.Related, Place{Path: s.path})
	}
	whole := ""
	if len(s.problems) > 0 {
		whole = string(s.text) // once, so that the lines below share it
	}
	for i := range s.problems {
		s.problems[i].Ref = s.ref
		if s.toml {
			s.problems[i].Field = tomlField(s.problems[i].Field)
		}
		if s.problems[i].Source == "" {
			s.problems[i].Source = lineText(whole, s.problems[i].Line)
		}
	}
	Discreet(s.problems, whole)
	return s.problems
}

package schemas

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
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

// gate accepts only text that every parser reads alike, and normalises it: one byte order mark is dropped, CRLF
// becomes LF. It reports a refused character, with the place, and then returns false.
func (s *source) gate(src []byte, limit int) bool {
	if limit > 0 && len(src) > limit {
		s.fail("too-large", 0, 0, "", "the file has %d bytes, at most %d are read", len(src), limit).
			hint("split it, or raise limits.fileSize in %s", SettingsPath)
		return false
	}
	for _, m := range [...]struct{ mark, encoding string }{ // the mark of UTF-16 begins that of UTF-32
		{"\xFF\xFE\x00\x00", "UTF-32"}, {"\x00\x00\xFE\xFF", "UTF-32"}, {"\xFF\xFE", "UTF-16"}, {"\xFE\xFF", "UTF-16"},
	} {
		if bytes.HasPrefix(src, []byte(m.mark)) {
			s.fail("encoding", 1, 1, "", "the file is %s", m.encoding).hint("save it as UTF-8")
			return false
		}
	}
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	if bytes.IndexByte(src, '\r') >= 0 {
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	}
	s.text = src
	if at, why := badByte(src); at >= 0 {
		line, col := placeOf(src, at)
		s.text = nil
		s.fail("encoding", line, col, "", "%s", why).hint("save the file as plain UTF-8 text")
		return false
	}
	if at := crowdedSource(src); at >= 0 {
		line, col := placeOf(src, at)
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

// crowdedSource finds where a text certainly has more values than a document may have, going by what separates them, or
// returns -1. Parsers build all of them before anyone can count, at some hundred bytes each. Long texts have separators
// too, but not one in ten characters.
func crowdedSource(b []byte) int {
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

// parse reads the text in its format. It returns nil after reporting that nothing can be read.
func (s *source) parse(src []byte, limit int) *value {
	if !s.gate(src, limit) {
		return nil
	}
	switch strings.ToLower(path.Ext(s.path)) {
	case ".yaml", ".yml":
		return s.parseYAML()
	case ".json":
		return s.parseJSON()
	case ".toml":
		return s.parseTOML()
	}
	s.fail("format", 0, 0, "", "the name ends in neither .yaml, .yml, .json nor .toml").hint("rename the file")
	return nil
}

// failed reports whether any problem is an error.
func (s *source) failed() bool {
	for i := range s.problems {
		if s.problems[i].Severity == Error {
			return true
		}
	}
	return false
}

// strings returns an object's fields that are text; nil for none.
func (v *value) strings() map[string]string {
	if v == nil || len(v.fields) == 0 {
		return nil
	}
	out := make(map[string]string, len(v.fields))
	for i := range v.fields {
		out[strings.Clone(v.fields[i].name)] = strings.Clone(v.fields[i].value.text)
	}
	return out
}

// describeRune names a character so that it can be seen: 'é', a space, U+202E.
func describeRune(r rune) string {
	switch r {
	case ' ':
		return "a space"
	case '\t':
		return "a tab"
	case '\n', '\r':
		return "a line end"
	}
	switch {
	case unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r):
		return fmt.Sprintf("'%c'", r)
	}
	return fmt.Sprintf("the character %U, which is not seen by itself", r)
}

// value is one value of a document, whatever it was written in, with the place where it stands.
type value struct {
	form      form
	bare      bool    // text or number that was written without quotes
	bad       bool    // a value that was reported and cannot be used
	line, col int     // from 1; columns count characters
	text      string  // of a text: the text; of a number: its canonical JSON form; of a boolean: true or false
	raw       string  // of a number: as it was written
	fields    []field // of an object, in the order of the file, no name twice
	items     []*value
}

// get returns the value of a field, or nil. v may be nil.
func (v *value) get(name string) *value {
	if f := v.field(name); f != nil {
		return f.value
	}
	return nil
}

func (v *value) field(name string) *field {
	if v == nil || v.form != object {
		return nil
	}
	for i := range v.fields {
		if v.fields[i].name == name {
			return &v.fields[i]
		}
	}
	return nil
}

// str returns the text of a field, or "".
func (v *value) str(name string) string {
	if f := v.get(name); f != nil && f.form == text {
		return f.text
	}
	return ""
}

// position finds the place of the value at a path, or of its nearest ancestor that exists. A set of fields or a list is
// found at its key, where it has one, since that is where a reader looks for it.
func (v *value) position(path []any) (line, col int) {
	line, col = v.line, v.col
	for _, step := range path {
		switch step := step.(type) {
		case string:
			f := v.field(step)
			if f == nil {
				return line, col
			}
			v, line, col = f.value, f.value.line, f.value.col
			if v.form == object || v.form == list {
				line, col = f.line, f.col
			}
		case int:
			if v.form != list || step < 0 || step >= len(v.items) {
				return line, col
			}
			v = v.items[step]
			line, col = v.line, v.col
		}
	}
	return line, col
}

// at returns the value at a path, or nil.
func (v *value) at(path []any) *value {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.get(step)
		case int:
			if v == nil || v.form != list || step < 0 || step >= len(v.items) {
				return nil
			}
			v = v.items[step]
		}
		if v == nil {
			return nil
		}
	}
	return v
}

func tooBig(s string) (why, hint string) {
	return "the number " + s + " is too large to be kept exactly (beyond 2^53)", `write "` + s + `" in quotes if it is text`
}

// badText names the first control character of a text that escapes brought in, or "".
func badText(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7F {
			return describeRune(rune(c))
		}
	}
	return ""
}

// isBlank reports whether the document holds nothing but comments.
func isBlank(doc *yaml.Node) bool {
	n := doc.Content[0]
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

// bounded counts values and levels; it reports the first one too many.
func (s *source) bounded(line, col, depth int) bool {
	s.values++
	switch {
	case depth > maxDepth:
		if !s.has("too-deep") {
			s.fail("too-deep", line, col, "", "values are nested more than %d deep", maxDepth)
		}
		return false
	case s.values == maxValues+1:
		s.fail("too-many", line, col, "", "the file has more than %d values", maxValues).hint("split it")
	}
	return s.values <= maxValues
}

func (s *source) has(code string) bool {
	for _, p := range s.problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

// find is field, by way of an index where there is one.
func (v *value) find(name string, index map[string]int) *field {
	if index == nil {
		return v.field(name)
	}
	if i, ok := index[name]; ok {
		return &v.fields[i]
	}
	return nil
}

func (s *source) duplicate(first *field, line, col int, path []any) {
	s.fail("duplicate-key", line, col, pathText(path), "%q is set twice", first.name).
		hint("keep one of them").also(first.line, first.col, "the first one")
}

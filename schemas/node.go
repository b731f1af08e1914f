package schemas

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// form says what a value of a document is.
type form uint8

// The six forms of JSON values.
const (
	null form = iota
	boolean
	number
	text
	list
	object
)

func (f form) String() string {
	return [...]string{"nothing", "true or false", "a number", "text", "a list", "a set of fields"}[f]
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

// field is one key and its value.
type field struct {
	name      string
	line, col int // of the key
	value     *value
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

// canonical appends the canonical JSON: keys sorted by bytes, no space, no HTML escaping, numbers in their shortest
// form. Fields for which skip says so are left out; skip may be nil.
func (v *value) canonical(b []byte, skip map[*value]bool) []byte {
	switch v.form {
	case null:
		return append(b, "null"...)
	case boolean, number:
		return append(b, v.text...)
	case text:
		return appendString(b, v.text)
	case list:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.canonical(b, skip)
		}
		return append(b, ']')
	}
	return v.canonicalObject(b, skip)
}

func (v *value) canonicalObject(b []byte, skip map[*value]bool) []byte {
	var few [24]int
	order := few[:0]
	for i := range v.fields {
		if !skip[v.fields[i].value] {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(v.fields[i].name, v.fields[j].name) })
	b = append(b, '{')
	for n, i := range order {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendString(b, v.fields[i].name)
		b = append(b, ':')
		b = v.fields[i].value.canonical(b, skip)
	}
	return append(b, '}')
}

// appendString appends s as encoding/json writes it without HTML escaping.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			b = append(b, '\\', 'u', '2', '0', '2', hex[r&0xF])
			i += size
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// FieldPath formats a path below the root of a document as text, as problems name the field: spec.nodes[2].needs[0].
func FieldPath(path []any) string { return pathText(path) }

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

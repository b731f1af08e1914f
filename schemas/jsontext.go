package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseJSON reads a JSON file strictly, or reports why it cannot.
func (s *source) parseJSON() *value {
	if strings.TrimSpace(string(s.text)) == "" {
		s.fail("empty", 1, 1, "", "the file holds no object").hint("write apiVersion, kind, metadata and spec, or remove it")
		return nil
	}
	if !json.Valid(s.text) {
		s.jsonError()
		return nil
	}
	p := jsonParser{s: s, text: s.text, lines: newLines(s.text)}
	return p.value(nil, 0)
}

// jsonError reports what encoding/json says about the text.
func (s *source) jsonError() {
	var raw json.RawMessage
	err := json.Unmarshal(s.text, &raw)
	line, col := 1, 1
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, col = placeOf(s.text, int(syntax.Offset)-1)
	}
	message := fmt.Sprint(err)
	switch {
	case strings.Contains(message, "after top-level value"):
		s.fail("several-documents", line, col, "", "something follows the object; a file holds one").
			hint("move it to a file of its own, or remove it")
	case strings.Contains(message, "unexpected end"):
		s.fail("syntax", line, col, "", "the JSON ends too early").hint("close every { and [")
	case strings.Contains(message, "exceeded max depth"):
		s.fail("too-deep", line, col, "", "values are nested more than %d deep", maxDepth)
	default:
		s.fail("syntax", line, col, "", "this is not JSON: %s", strings.TrimPrefix(message, "json: ")).
			hint("JSON has neither comments nor commas after the last item")
	}
}

// jsonParser builds values of text that is known to be valid JSON.
type jsonParser struct {
	s     *source
	text  []byte
	at    int
	lines *lines
}

// next skips space and separators and returns the byte that follows.
func (p *jsonParser) next() byte {
	for strings.IndexByte(" \t\n\r,:", p.text[p.at]) >= 0 {
		p.at++
	}
	return p.text[p.at]
}

func (p *jsonParser) value(path []any, depth int) *value {
	c := p.next()
	v := &value{}
	v.line, v.col = p.lines.place(p.at)
	v.bad = !p.s.bounded(v.line, v.col, depth)
	switch c {
	case '{':
		p.object(v, path, depth)
	case '[':
		p.list(v, path, depth)
	case '"':
		v.form = text
		v.text = p.string(v, path)
	default:
		p.word(v, path)
	}
	return v
}

func (p *jsonParser) object(v *value, path []any, depth int) {
	v.form = object
	seen := map[string]int{}
	for p.at++; p.next() != '}'; {
		key := &value{}
		key.line, key.col = p.lines.place(p.at)
		name := p.string(key, path)
		below := append(path[:len(path):len(path)], name)
		val := p.value(below, depth+1)
		if first := v.find(name, seen); first != nil {
			p.s.duplicate(first, key.line, key.col, below)
			continue
		}
		if !key.bad && !p.s.full(v, key.line, key.col, path) {
			seen[name] = len(v.fields)
			v.fields = append(v.fields, field{name, key.line, key.col, val})
		}
	}
	p.at++
}

func (p *jsonParser) list(v *value, path []any, depth int) {
	v.form = list
	for p.at++; p.next() != ']'; {
		v.items = append(v.items, p.value(append(path[:len(path):len(path)], len(v.items)), depth+1))
	}
	p.at++
}

// string reads a string; v is marked bad if it holds what no text should.
func (p *jsonParser) string(v *value, path []any) string {
	start := p.at
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	raw := p.text[start:p.at]
	out := string(raw[1 : len(raw)-1])
	if strings.IndexByte(out, '\\') >= 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			p.s.fail("syntax", v.line, v.col, pathText(path), "this is not a JSON string: %v", err)
			v.bad = true
			return ""
		}
	}
	why := badText(out)
	if why == "" && strings.ContainsRune(out, '\uFFFD') && !strings.Contains(string(raw), "\uFFFD") &&
		!strings.Contains(strings.ToLower(string(raw)), `\ufffd`) {
		why = "half of a character (a lone surrogate)"
	}
	if why != "" {
		p.s.fail("bad-character", v.line, v.col, pathText(path), "contains %s", why).hint("remove it")
		v.bad = true
	}
	return out
}

// word reads a number, true, false or null.
func (p *jsonParser) word(v *value, path []any) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r,:]}", p.text[p.at]) < 0 {
		p.at++
	}
	if why, hint := v.plainScalar(string(p.text[start:p.at])); why != "" {
		p.s.fail("bad-number", v.line, v.col, pathText(path), "%s", why).hint("%s", hint)
		v.bad = true
	}
}

// jsonField is a field of a JSON object whose value is not parsed.
type jsonField struct {
	name string
	text []byte
}

// jsonFields splits an object in valid JSON without escapes in its names. It is much faster than parsing the values. ok is
// false if the text is no object.
func jsonFields(text []byte) (fields []jsonField, ok bool) {
	i := skipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return nil, false
	}
	for {
		i = skipSpace(text, i+1)
		if i >= len(text) || text[i] == '}' {
			return fields, i < len(text)
		}
		end := skipJSON(text, i)
		if text[i] != '"' || end < i+2 {
			return nil, false
		}
		name := string(text[i+1 : end-1])
		i = skipSpace(text, skipSpace(text, end)+1)
		if i > len(text) {
			return nil, false
		}
		end = skipJSON(text, i)
		fields = append(fields, jsonField{name, text[i:end]})
		if i = skipSpace(text, end); i >= len(text) || text[i] == '}' {
			return fields, i < len(text)
		}
	}
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skipJSON returns the end of the JSON value of a document that begins at i.
func skipJSON(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = skipString(text, i); depth == 0 || i == len(text) {
				return i
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// skipString returns the end of the string that begins at i.
func skipString(text []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		escapes := 0
		for text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
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
		return AppendString(b, v.text)
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
		b = AppendString(b, v.fields[i].name)
		b = append(b, ':')
		b = v.fields[i].value.canonical(b, skip)
	}
	return append(b, '}')
}

// unquote resolves the escapes in v.text, or gives up.
func (v *value) unquote(mark byte) *value {
	if mark == '\'' {
		v.text = strings.ReplaceAll(v.text, "''", "'")
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v.text); i++ {
		c := v.text[i]
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		i++
		switch v.text[i] {
		case 'n':
			b.WriteByte('\n')
		case '"', '\\':
			b.WriteByte(v.text[i])
		default:
			return nil
		}
	}
	v.text = b.String()
	return v
}

// Nesting that encoding/json refuses, and text that is too short to nest deep enough to exhaust a goroutine's stack.
const (
	deepest = 10_000
	shallow = 1 << 19 // bytes; a million levels of a decoder still fit into the stack
)

// TooDeep reports whether the brackets in JSON data are nested too deep for a decoder without a bound of its own. Such a
// decoder must not see it: it would exhaust the stack, which ends the process. The text may be no JSON at all.
func TooDeep(data []byte) bool {
	if len(data) < shallow {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > deepest {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}

// Depth returns the depth to which the brackets in JSON data are nested at most. Brackets in texts count, too.
func Depth(data []byte) (most int) {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		most = max(most, depth)
	}
	return most
}

// Marshal encodes v as JSON, like json.Marshal, but does not escape HTML: <, > and & stay as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendString appends a text as encoding/json does that leaves <, > and & as they are.
func AppendString(b []byte, s string) []byte {
	start, from, ascii := len(b), 0, true
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		if ' ' <= c && c != '"' && c != '\\' {
			ascii = ascii && c < utf8.RuneSelf
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			return appendRare(b[:start], s)
		}
	}
	if !ascii && (!utf8.ValidString(s) || strings.ContainsAny(s, "\u2028\u2029")) {
		return appendRare(b[:start], s)
	}
	return append(append(b, s[from:]...), '"')
}

// appendRare is [AppendString] for texts with characters that are rare.
func appendRare(b []byte, s string) []byte {
	q, _ := Marshal(s) // text always marshals
	return append(b, q...)
}

// PlainJSON describes an error of package encoding/json without the types of Go.
func PlainJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s is a JSON %s, and has to be %s", cmp.Or(wrong.Field, "it"), wrong.Value, jsonType(wrong.Type))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// jsonType names the JSON value that a field of a type takes.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	}
	return "a number"
}

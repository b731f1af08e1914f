package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the one document of a YAML file, or reports why it cannot.
func (s *source) parseYAML() *value {
	if v := plainYAML(string(s.text), s.store); v != nil {
		return v
	}
	return s.fullYAML()
}

// fullYAML is parseYAML for all of YAML.
func (s *source) fullYAML() *value {
	docs, err := yamlDocuments(s.text)
	if err != nil {
		s.yamlError(err)
		return nil
	}
	if len(docs) == 0 || docs[0].Kind == 0 || len(docs[0].Content) == 0 || isBlank(docs[0]) {
		s.fail("empty", 1, 1, "", "the file holds no object").hint("write apiVersion, kind, metadata and spec, or remove it")
		return nil
	}
	if len(docs) > 1 {
		line, col := s.secondDocument(docs[1])
		s.fail("several-documents", line, col, "", "a second document starts here; a file holds one object").
			hint("move it to a file of its own, or remove it")
	}
	return s.yamlValue(docs[0].Content[0], nil, 0)
}

// JSONOfYAML converts a YAML document to JSON, with the values that it has in a spec: of words, only true, false and null are not text. The
// error names the place; name is that of the text.
func JSONOfYAML(name string, src []byte) ([]byte, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		return []byte("null"), nil
	}
	s := newSource(name)
	s.store = new(valueStore)
	if s.gate(src, 0) {
		if root := s.parseYAML(); root != nil && !s.failed() {
			return root.canonical(nil, nil), nil
		}
	}
	return nil, s.finish()[0]
}

// yamlDocuments parses up to two documents. A panic of the parser counts as an error of the file.
func yamlDocuments(b []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(b))
	for len(docs) < 2 {
		n := new(yaml.Node)
		switch err := dec.Decode(n); {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return docs, err
		}
		docs = append(docs, n)
	}
	return docs, nil
}

// secondDocument is the place of the line that starts it.
func (s *source) secondDocument(n *yaml.Node) (line, col int) {
	for line = max(n.Line, 1); line > 1; line-- {
		if strings.HasPrefix(lineText(string(s.text), line), "---") {
			return line, 1
		}
	}
	return max(n.Line, 1), max(n.Column, 1)
}

// yamlValue converts a node and all below it; path is where it stands, for messages. What cannot be used is reported
// and comes back as a bad value, so that the fields around it keep their places.
func (s *source) yamlValue(n *yaml.Node, path []any, depth int) *value {
	v := &value{line: n.Line, col: n.Column}
	if !s.bounded(n.Line, n.Column, depth) {
		v.bad = true
		return v
	}
	switch {
	case n.Kind == yaml.AliasNode:
		s.fail("alias", n.Line, n.Column, pathText(path), "aliases are not supported").hint("write the value out")
		v.bad = true
		return v
	case n.Style&yaml.TaggedStyle != 0:
		s.fail("tag", n.Line, n.Column, pathText(path), "tags are not supported").
			hint("remove %s; text that looks like something else goes in quotes", n.Tag)
		v.bad = true
		return v
	case n.Anchor != "":
		s.fail("alias", n.Line, n.Column, pathText(path), "anchors are not supported").hint("remove &%s", n.Anchor)
	}
	switch n.Kind {
	case yaml.MappingNode:
		s.yamlFields(v, n, path, depth)
	case yaml.SequenceNode:
		s.yamlItems(v, n, path, depth)
	default:
		s.yamlScalar(v, n, path)
	}
	return v
}

func (s *source) yamlFields(v *value, n *yaml.Node, path []any, depth int) {
	v.form = object
	v.fields = make([]field, 0, len(n.Content)/2)
	var seen map[string]int
	if len(n.Content) > 16 {
		seen = make(map[string]int, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if s.full(v, key.Line, key.Column, path) {
			return
		}
		if !s.yamlKey(key, path) {
			continue
		}
		below := append(path[:len(path):len(path)], key.Value)
		if first := v.find(key.Value, seen); first != nil {
			s.duplicate(first, key.Line, key.Column, below)
			continue
		}
		if seen != nil {
			seen[key.Value] = len(v.fields)
		}
		v.fields = append(v.fields, field{key.Value, key.Line, key.Column, s.yamlValue(n.Content[i+1], below, depth+1)})
	}
}

// yamlKey reports keys that JSON does not have.
func (s *source) yamlKey(key *yaml.Node, path []any) bool {
	switch {
	case key.Kind != yaml.ScalarNode:
		s.fail("bad-key", key.Line, key.Column, pathText(path), "a key is a word, not a list or a set of fields").
			hint("put { } or [ ] that are text in quotes")
		return false
	case key.Style&yaml.TaggedStyle != 0 || key.Anchor != "":
		s.fail("tag", key.Line, key.Column, pathText(path), "keys have no tags or anchors").hint("write the key alone")
		return false
	case key.Style != 0:
		if why := badText(key.Value); why != "" {
			s.fail("bad-character", key.Line, key.Column, pathText(path), "a key contains %s", why)
			return false
		}
		return true
	case key.Value == "<<":
		s.fail("alias", key.Line, key.Column, pathText(path), "merge keys are not supported").hint("write the fields out")
		return false
	}
	var k value
	if why, _ := k.plainScalar(key.Value); why != "" || k.form != text {
		s.fail("bad-key", key.Line, key.Column, pathText(path), "the key %s is not text", key.Value).
			hint("write %s", strconv.Quote(key.Value))
		return false
	}
	return true
}

func (s *source) yamlItems(v *value, n *yaml.Node, path []any, depth int) {
	v.form = list
	v.items = make([]*value, 0, len(n.Content))
	for i, item := range n.Content {
		below := append(path[:len(path):len(path)], i)
		v.items = append(v.items, s.yamlValue(item, below, depth+1))
	}
}

func (s *source) yamlScalar(v *value, n *yaml.Node, path []any) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		v.form, v.text = text, n.Value
		if why := badText(n.Value); why != "" {
			s.fail("bad-character", n.Line, n.Column, pathText(path), "contains %s", why).hint("remove it")
			v.bad = true
		}
		return
	}
	if why, hint := v.plainScalar(n.Value); why != "" {
		s.fail("bad-number", n.Line, n.Column, pathText(path), "%s", why).hint("%s", hint)
		v.bad = true
	}
}

// yamlError turns the parser's error into a problem. The parser counts lines from where it began to look, which may be
// far above; the line where it stumbles is found by giving it less and less of the text.
func (s *source) yamlError(err error) {
	line := s.stumble(err.Error())
	source := lineText(string(s.text), line)
	col := 1 + len(source) - len(strings.TrimLeft(source, " \t"))
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, after, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(message, "line ") {
		message = after
	}
	why, hint := explainYAML(message, source)
	p := s.fail("syntax", line, col, "", "%s", why)
	if hint != "" {
		p.hint("%s", hint)
	}
}

// stumble is the first line with which the text up to there has the same error as the whole text. The parser reads
// from left to right, so that every longer beginning has that error too: a binary search finds it.
func (s *source) stumble(message string) int {
	ends := []int{0}
	for i, c := range s.text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	if last := len(s.text); ends[len(ends)-1] < last {
		ends = append(ends, last)
	}
	const quick = 64 << 10 // larger texts are not parsed again and again
	if len(s.text) > quick {
		return parserLine(message, len(ends)-1)
	}
	k, _ := slices.BinarySearchFunc(ends[1:], 0, func(end, _ int) int {
		if _, err := yamlDocuments(s.text[:end]); err != nil && err.Error() == message {
			return 0
		}
		return -1
	})
	return min(k+1, max(len(ends)-1, 1))
}

// parserLine is the line that the parser names, within the text.
func parserLine(message string, lines int) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(message, "yaml: line "), ":")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	return min(max(n, 1), max(lines, 1))
}

// explainYAML says in plain words what the parser complains about.
func explainYAML(message, line string) (why, hint string) {
	trimmed := strings.TrimLeft(line, " ")
	if strings.HasPrefix(trimmed, "\t") {
		return "the line is indented with a tab", "indent with spaces"
	}
	for _, e := range yamlErrors {
		if strings.Contains(message, e.contains) {
			return e.why, e.hint
		}
	}
	return "the YAML cannot be read: " + message, ""
}

// yamlErrors is a table because the parser tells its errors apart by text only.
var yamlErrors = []struct{ contains, why, hint string }{
	{"mapping values are not allowed", "a second \": \" on a line, or a field indented deeper than its neighbours",
		"put text with \": \" in quotes, or align the fields"},
	{"did not find expected key", "a line does not fit the indentation or the quotes around it",
		"align it with the fields that it belongs to"},
	{"did not find expected '-' indicator", "a line does not fit the list around it", "start each item with \"- \""},
	{"could not find expected ':'", "a key without \": \"", "write key: value"},
	{"did not find expected ',' or ']'", "a list in brackets is not closed, or a comma is missing",
		"add , or ]; in brackets, text with a ? needs quotes"},
	{"did not find expected ',' or '}'", "a set of fields in braces is not closed, or a comma is missing",
		"add , or }; in braces, text with a ? needs quotes"},
	{"found unexpected end of stream", "quotes are opened and not closed", "close them"},
	{"did not find expected node content", "a value is missing, or a bracket is not closed",
		"write the value, or \"\" for empty text, and close each [ and {"},
	{"found character that cannot start any token", "a value begins with a character that YAML reserves (tab, @, `, %)",
		"put the value in quotes"},
	{"found a tab character", "a tab where YAML wants spaces", "indent with spaces"},
	{"unknown escape character", "an escape that YAML does not know in double quotes",
		"write \\\\ for a backslash, or use single quotes"},
	{"unknown anchor", "an alias without its anchor", "put text that begins with * in quotes"},
	{"did not find expected alphabetic or numeric character", "an alias or anchor without a name",
		"put text that begins with * or & in quotes"},
	{"block sequence entries are not allowed", "a list item stands where none can",
		"start the list on a line of its own"},
	{"exceeded max depth", "values are nested too deep", "nest less than 64 deep"},
	{"found undefined tag handle", "a tag; tags are not supported", "put text that begins with ! in quotes"},
}

// hasOddBreak reports characters that YAML 1.1 takes for line ends, or that no YAML may contain.
func hasOddBreak(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x80 || c != 0xE2 && c != 0xEF || i+2 >= len(s) {
			continue
		}
		switch s[i : i+3] {
		case "\u2028", "\u2029", "\uFFFE", "\uFFFF", "\uFEFF":
			return true
		}
	}
	return false
}

// Brackets and quotes, for the quick reader. Only texts in single quotes may be longer than a line.

// flow reads quotes and brackets that end on this line.
func (r *plainReader) flow(depth int) *value {
	if r.at >= r.end {
		return nil
	}
	switch r.text[r.at] {
	case '[':
		return r.flowList(depth)
	case '{':
		return r.flowObject(depth)
	case '"', '\'':
		return r.quoted(depth)
	}
	s := r.rest()
	if i := strings.IndexAny(s, ",[]{}?"); i >= 0 && s[i] != '?' {
		s = s[:i]
	} else {
		return nil // the bracket is not closed here
	}
	if !startsPlain(strings.TrimRight(s, " ")) || strings.Contains(s, ": ") || s[len(s)-1] == ':' ||
		strings.Contains(s, " #") {
		return nil
	}
	v := r.scalar(strings.TrimRight(s, " "), depth)
	r.at += len(s)
	return v
}

func (r *plainReader) flowList(depth int) *value {
	v := r.value(list, depth)
	r.at++
	if r.spaces(); v != nil && r.at < r.end && r.text[r.at] == ']' {
		r.at++
		return v
	}
	for v != nil {
		item := r.flow(depth + 1)
		if item == nil {
			return nil
		}
		v.items = append(v.items, item)
		if done, ok := r.separator(']'); done || !ok {
			return keepForm(v, ok)
		}
	}
	return nil
}

func (r *plainReader) flowObject(depth int) *value {
	v := r.value(object, depth)
	r.at++
	if r.spaces(); v != nil && r.at < r.end && r.text[r.at] == '}' {
		r.at++
		return v
	}
	for v != nil {
		f := field{line: r.line, col: r.column(r.at)}
		name, ok := r.key()
		if !ok || v.field(name) != nil || len(v.fields) > 200 {
			return nil
		}
		f.name = name
		if f.value = r.flow(depth + 1); f.value == nil {
			return nil
		}
		v.fields = append(v.fields, f)
		if done, ok := r.separator('}'); done || !ok {
			return keepForm(v, ok)
		}
	}
	return nil
}

// separator reads a comma, or the closing bracket and then says done.
func (r *plainReader) separator(closing byte) (done, ok bool) {
	r.spaces()
	if r.at >= r.end {
		return false, false
	}
	c := r.text[r.at]
	r.at++
	if c == closing {
		return true, true
	}
	r.spaces()
	return false, c == ',' && r.at < r.end && r.text[r.at] != closing
}

// Package edit changes one field of a spec file and leaves every other byte unchanged, including comments, order, quotes
// and indentation.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Spec sets spec.<field> of the YAML or JSON document src to a word: letters only, so that it needs no quotes in YAML. It
// returns src itself if the field already has that value. The caller must check the result with the decoder: this package
// knows text, not kinds.
func Spec(src []byte, field, word string) ([]byte, error) {
	spec, err := specOf(src)
	if err != nil {
		return nil, err
	}
	if value := find(spec, field); value != nil {
		return replace(src, value, word)
	}
	return insert(src, spec, field, word)
}

// specOf returns the mapping spec of a document.
func specOf(src []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("edit: the file is no object")
	}
	spec := find(doc.Content[0], "spec")
	if spec == nil || spec.Kind != yaml.MappingNode {
		return nil, errors.New("edit: the file has no spec to put a field into")
	}
	return spec, nil
}

// find returns the value of a key of a mapping; nil if it is missing.
func find(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// replace replaces a plain or quoted scalar by word, with the same quotes.
func replace(src []byte, value *yaml.Node, word string) ([]byte, error) {
	if value.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("edit: line %d: the value is no word", value.Line)
	}
	if value.Value == word {
		return src, nil
	}
	quote := ""
	switch value.Style &^ yaml.TaggedStyle {
	case yaml.DoubleQuotedStyle:
		quote = `"`
	case yaml.SingleQuotedStyle:
		quote = `'`
	case 0:
	default:
		return nil, fmt.Errorf("edit: line %d: the value is written as a block", value.Line)
	}
	at, err := offset(src, value)
	if err != nil {
		return nil, err
	}
	old := quote + value.Value + quote
	if !bytes.HasPrefix(src[at:], []byte(old)) {
		return nil, fmt.Errorf("edit: line %d: the value is written with escapes or over several lines", value.Line)
	}
	return splice(src, at, len(old), quote+word+quote), nil
}

// insert adds the field as the first of spec.
func insert(src []byte, spec *yaml.Node, field, word string) ([]byte, error) {
	if spec.Style&yaml.FlowStyle != 0 {
		return insertFlow(src, spec, field, word)
	}
	first := spec.Content[0]
	at, err := offset(src, first)
	if err != nil {
		return nil, err
	}
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	indent := string(src[start:at])
	if strings.TrimLeft(indent, " ") != "" {
		return nil, fmt.Errorf("edit: line %d: the spec does not start on a line of its own", first.Line)
	}
	end := "\n"
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		end = "\r\n"
	}
	return splice(src, at, 0, field+": "+word+end+indent), nil
}

// insertFlow adds the field after the brace of {…}, in JSON form if the mapping is JSON.
func insertFlow(src []byte, spec *yaml.Node, field, word string) ([]byte, error) {
	at, err := offset(src, spec)
	if err != nil {
		return nil, err
	}
	if src[at] != '{' {
		return nil, fmt.Errorf("edit: line %d: the spec does not start with a brace", spec.Line)
	}
	entry := field + ": " + word
	if json := bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")); json {
		entry = fmt.Sprintf("%q: %q", field, word)
	}
	if len(spec.Content) > 0 {
		rest := src[at+1:]
		space := rest[:len(rest)-len(bytes.TrimLeft(rest, " \t\r\n"))]
		entry = string(space) + entry + ","
		if len(space) == 0 {
			entry += " "
		}
	}
	return splice(src, at+1, 0, entry), nil
}

// offset returns the position of a node in src. Its line counts from 1, its column counts characters from 1.
func offset(src []byte, n *yaml.Node) (int, error) {
	at := 0
	for line := 1; line < n.Line; line++ {
		i := bytes.IndexByte(src[at:], '\n')
		if i < 0 {
			return 0, fmt.Errorf("edit: line %d is beyond the end", n.Line)
		}
		at += i + 1
	}
	text := string(src[at:])
	if n.Line == 1 {
		trimmed := strings.TrimPrefix(text, "\ufeff")
		at += len(text) - len(trimmed)
		text = trimmed
	}
	column := 1
	for i := range text {
		if column == n.Column {
			return at + i, nil
		}
		column++
	}
	return 0, fmt.Errorf("edit: line %d has no column %d", n.Line, n.Column)
}

func splice(src []byte, at, drop int, text string) []byte {
	out := make([]byte, 0, len(src)+len(text))
	out = append(out, src[:at]...)
	out = append(out, text...)
	return append(out, src[at+drop:]...)
}

// AddToList returns src with items at the beginning of a list of its spec; field names the list and the objects that it is
// in. It adds missing fields.
func AddToList(src []byte, field, items []string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("edit: the file is no object")
	}
	quoted := make([]string, len(items))
	for i, item := range items {
		b, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		quoted[i] = string(b)
	}
	in, names := doc.Content[0], append([]string{"spec"}, field...)
	for i, name := range names {
		value := find(in, name)
		if value == nil || value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			if value != nil || i == 0 {
				return nil, fmt.Errorf("edit: %s is empty", name)
			}
			return addFields(src, in, names[i:], "["+strings.Join(quoted, ", ")+"]")
		}
		in = value
		if last := i == len(names)-1; last && in.Kind != yaml.SequenceNode || !last && in.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("edit: line %d: the value of %s has another form", in.Line, name)
		}
	}
	return addItems(src, in, quoted)
}

// addFields adds nested fields to an object in the text of a YAML file.
func addFields(src []byte, in *yaml.Node, names []string, value string) ([]byte, error) {
	for i := len(names) - 1; i > 0; i-- {
		value = fmt.Sprintf("{%q: %s}", names[i], value)
	}
	if len(in.Content) > 0 && in.Style&yaml.FlowStyle == 0 {
		return insert(src, in, names[0], value)
	}
	at, err := offset(src, in)
	if err != nil {
		return nil, err
	}
	if src[at] != '{' {
		return nil, fmt.Errorf("edit: line %d: the object does not start with a brace", in.Line)
	}
	entry := fmt.Sprintf("%q: %s", names[0], value)
	if len(in.Content) > 0 {
		entry += ", "
	}
	return splice(src, at+1, 0, entry), nil
}

// addItems adds items at the beginning of a list.
func addItems(src []byte, list *yaml.Node, items []string) ([]byte, error) {
	if list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		at, err := offset(src, list)
		if err != nil {
			return nil, err
		}
		if src[at] != '[' {
			return nil, fmt.Errorf("edit: line %d: the list does not start with a bracket", list.Line)
		}
		text := strings.Join(items, ", ")
		if len(list.Content) > 0 {
			text += ", "
		}
		return splice(src, at+1, 0, text), nil
	}
	at, err := offset(src, list)
	if err != nil {
		return nil, err
	}
	indent := src[bytes.LastIndexByte(src[:at], '\n')+1 : at]
	if len(bytes.TrimLeft(indent, " ")) > 0 || src[at] != '-' {
		return nil, fmt.Errorf("edit: line %d: the list does not start on a line of its own", list.Line)
	}
	end := "\n"
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		end = "\r\n"
	}
	var b strings.Builder
	for _, item := range items {
		b.WriteString("- " + item + end + string(indent))
	}
	return splice(src, at, 0, b.String()), nil
}

package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Item is an element of a list of objects that have names. Value is the new value, in JSON; nil keeps the text of the element.
type Item struct {
	Name  string
	Value []byte
}

// Items makes the list spec.<list> of the YAML or JSON document src have the items want: elements of other names go, new ones are added
// at the end. All other bytes stay, where the list is written as a block. As with Spec, the caller must check the result with the decoder.
func Items(src []byte, list string, want []Item) ([]byte, error) {
	spec, err := specOf(src)
	if err != nil {
		return nil, err
	}
	in := find(spec, list)
	switch {
	case in == nil || in.Kind != yaml.SequenceNode || len(in.Content) == 0:
		return nil, fmt.Errorf("edit: spec.%s is no list with elements", list)
	case in.Style&yaml.FlowStyle != 0:
		return flowItems(src, in, want)
	}
	return blockItems(src, in, want)
}

// nameOf is the name of an element; "" for none.
func nameOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	if name := find(n, "name"); name != nil {
		return name.Value
	}
	return ""
}

// blockItems changes a list with a dash before each element.
func blockItems(src []byte, in *yaml.Node, want []Item) ([]byte, error) {
	dash, starts, end := in.Column-1, []int(nil), 0
	lines := bytes.SplitAfter(src, []byte("\n"))
	for i := in.Line - 1; i < len(lines); i++ {
		text := bytes.TrimRight(lines[i], "\r\n")
		indent := len(text) - len(bytes.TrimLeft(text, " "))
		switch body := text[indent:]; {
		case len(body) == 0 || body[0] == '#':
			continue
		case indent == dash && body[0] == '-' && (len(body) == 1 || body[1] == ' '):
			starts = append(starts, i)
		case indent <= dash:
			return joinItems(lines, starts, i, dash, in, want)
		}
		end = i + 1
	}
	return joinItems(lines, starts, end, dash, in, want)
}

// joinItems puts the lines together: those before the list, the wanted elements, and the rest from the line after.
func joinItems(lines [][]byte, starts []int, after, dash int, in *yaml.Node, want []Item) ([]byte, error) {
	if len(starts) != len(in.Content) || starts[0] != in.Line-1 {
		return nil, fmt.Errorf("edit: line %d: the elements of the list do not start on lines of their own", in.Line)
	}
	for after > starts[len(starts)-1]+1 && between(lines[after-1], dash) {
		after-- // it belongs to what follows
	}
	parts := map[string][][]byte{}
	for i, start := range starts {
		next := after
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		for next < after && next > start+1 && between(lines[next-1], dash) {
			next--
		}
		from := start
		for i > 0 && between(lines[from-1], dash) {
			from--
		}
		parts[nameOf(in.Content[i])] = lines[from:next]
	}
	eol := []byte("\n")
	if bytes.HasSuffix(lines[0], []byte("\r\n")) {
		eol = []byte("\r\n")
	}
	out := bytes.Join(lines[:starts[0]], nil)
	for _, item := range want {
		part, known := parts[item.Name]
		if item.Value == nil && !known {
			return nil, fmt.Errorf("edit: the list has no element %q", item.Name)
		}
		if item.Value == nil {
			out = endLine(append(out, bytes.Join(part, nil)...), eol)
			continue
		}
		for _, line := range part {
			if !between(line, dash) {
				break
			}
			out = append(out, line...)
		}
		text, err := blockItem(item.Value, dash, eol)
		if err != nil {
			return nil, err
		}
		out = append(endLine(out, eol), text...)
	}
	return append(out, bytes.Join(lines[after:], nil)...), nil
}

// between reports whether a line is between two elements: it is blank, or a comment that is not indented more than their dashes.
func between(line []byte, dash int) bool {
	body := bytes.TrimLeft(line, " ")
	return len(bytes.TrimSpace(body)) == 0 || body[0] == '#' && len(line)-len(body) <= dash
}

// endLine ends the last line of a text that the file did not end.
func endLine(text, eol []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(text, eol...)
	}
	return text
}

// blockItem writes an element as a block with a dash.
func blockItem(value []byte, dash int, eol []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(value, &doc); err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("edit: an element is no object")
	}
	plain(&doc)
	nameFirst(doc.Content[0])
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	indent := strings.Repeat(" ", dash)
	var out bytes.Buffer
	for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		switch {
		case i == 0:
			out.WriteString(indent + "- " + line)
		case line != "":
			out.WriteString(indent + "  " + line)
		}
		out.Write(eol)
	}
	return out.Bytes(), nil
}

// plain takes the styles of JSON away. Lists of words stay on one line.
func plain(n *yaml.Node) {
	n.Style = 0
	words := n.Kind == yaml.SequenceNode
	for _, c := range n.Content {
		plain(c)
		words = words && c.Kind == yaml.ScalarNode && !strings.Contains(c.Value, "\n")
	}
	if words {
		n.Style = yaml.FlowStyle
	}
}

// nameFirst moves the name to the front.
func nameFirst(m *yaml.Node) {
	for i := 2; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == "name" {
			pair := slices.Clone(m.Content[i : i+2])
			m.Content = append(pair, slices.Delete(m.Content, i, i+2)...)
			return
		}
	}
}

// flowItems changes a list in brackets: it is written again, as JSON.
func flowItems(src []byte, in *yaml.Node, want []Item) ([]byte, error) {
	at, err := offset(src, in)
	if err != nil {
		return nil, err
	}
	end := closing(src, at)
	if end < 0 {
		return nil, fmt.Errorf("edit: line %d: the list does not end", in.Line)
	}
	known := map[string]*yaml.Node{}
	for _, n := range in.Content {
		known[nameOf(n)] = n
	}
	values := make([]json.RawMessage, len(want))
	for i, item := range want {
		if values[i] = item.Value; item.Value != nil {
			continue
		}
		var v any
		n := known[item.Name]
		if n == nil {
			return nil, fmt.Errorf("edit: the list has no element %q", item.Name)
		}
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("edit: line %d: %w", n.Line, err)
		}
		if values[i], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("edit: line %d: %w", n.Line, err)
		}
	}
	text, err := json.Marshal(values)
	if bytes.IndexByte(src[at:end], '\n') >= 0 && err == nil {
		start := bytes.LastIndexByte(src[:at], '\n') + 1
		indent := src[start : start+len(src[start:at])-len(bytes.TrimLeft(src[start:at], " \t"))]
		text, err = json.MarshalIndent(values, string(indent), "  ")
	}
	if err != nil {
		return nil, err
	}
	return splice(src, at, end-at, string(text)), nil
}

// closing is the position after the bracket that closes the one at a position; -1 for none.
func closing(src []byte, at int) int {
	depth, quote := 0, byte(0)
	for i := at; i < len(src); i++ {
		switch c := src[i]; {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

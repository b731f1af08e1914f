package edit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetIn sets fields of the mapping spec.<field> of the YAML or JSON document src to values in JSON, and adds missing fields. Only a
// value on one line can be replaced. As with Spec, the caller must check the result with the decoder.
func SetIn(src []byte, field string, values map[string]string) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		next, err := setIn(src, field, name, values[name])
		if err != nil {
			return nil, err
		}
		src = next
	}
	return src, nil
}

func setIn(src []byte, field, name, value string) ([]byte, error) {
	spec, err := specOf(src)
	if err != nil {
		return nil, err
	}
	in := find(spec, field)
	switch {
	case in == nil:
		return insertJSON(src, spec, field, fmt.Sprintf("{%q: %s}", name, value))
	case in.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("edit: line %d: %s is no mapping", in.Line, field)
	}
	old := find(in, name)
	if old == nil {
		return insertJSON(src, in, name, value)
	}
	return replaceJSON(src, old, value)
}

// insertJSON adds a field with a value in JSON, which is also YAML.
func insertJSON(src []byte, in *yaml.Node, field, value string) ([]byte, error) {
	if in.Style&yaml.FlowStyle == 0 && len(in.Content) > 0 {
		return insert(src, in, field, value)
	}
	at, err := offset(src, in)
	if err != nil {
		return nil, err
	}
	if src[at] != '{' {
		return nil, fmt.Errorf("edit: line %d: the mapping does not start with a brace", in.Line)
	}
	entry := fmt.Sprintf("%q: %s", field, value)
	if len(in.Content) > 0 {
		entry += ", "
	}
	return splice(src, at+1, 0, entry), nil
}

// replaceJSON replaces a scalar on one line, or a list or mapping in braces on one line.
func replaceJSON(src []byte, old *yaml.Node, value string) ([]byte, error) {
	at, err := offset(src, old)
	if err != nil {
		return nil, err
	}
	line := src[at:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	// The shortest part of the line that is the value.
	for n := 1; n <= len(line); n++ {
		var is yaml.Node
		if text := strings.TrimSpace(string(line[:n])); len(text) == n && yaml.Unmarshal(line[:n], &is) == nil && len(is.Content) == 1 && same(is.Content[0], old) {
			return splice(src, at, n, value), nil
		}
	}
	return nil, fmt.Errorf("edit: line %d: the value is not on one line", old.Line)
}

// same reports whether two nodes have the same value.
func same(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, same)
}

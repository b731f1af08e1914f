package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// Explanation is the documentation of one field in the published schema.
type Explanation struct {
	Path        string        `json:"field"` // "dag.spec.nodes.needs"
	Type        string        `json:"type"`  // "text", "list of text", "map of text", "set of fields", …
	Required    bool          `json:"required,omitempty"`
	Default     string        `json:"default,omitempty"` // as JSON; empty without a default
	Enum        []string      `json:"values,omitempty"`  // the values that are allowed; empty when others are too
	Limits      []string      `json:"limits,omitempty"`  // "at least 1", "at most 63 characters", …
	Examples    []string      `json:"examples,omitempty"`
	Description string        `json:"description,omitempty"`
	Fields      []Explanation `json:"fields,omitempty"` // of a set of fields or a list of them, in order; their own Fields are empty
}

// Explain returns the explanation of the field at path in the published schema of kind k. path is below the document,
// without indices: "spec", "nodes", "needs". The error names the nearest field that exists.
func Explain(k Kind, path []string) (Explanation, error) {
	at, err := parseShape(Schema(k))
	if err != nil {
		return Explanation{}, err
	}
	words := []string{k.Singular()}
	required := true
	for _, name := range path {
		for at.items != nil {
			at = at.items
		}
		next := at.prop(name)
		if next == nil {
			return Explanation{}, at.noField(name, words)
		}
		required = slices.Contains(at.required, name)
		at, words = next, append(words, name)
	}
	e := at.explain(strings.Join(words, "."), required)
	for at.items != nil {
		at = at.items
	}
	for _, p := range at.props {
		e.Fields = append(e.Fields, p.shape.explain(e.Path+"."+p.name, slices.Contains(at.required, p.name)))
	}
	return e, nil
}

func (s *shape) noField(name string, words []string) error {
	at := strings.Join(words, ".")
	switch near := Nearest(name, s.names()); {
	case near != "":
		return fmt.Errorf("%s has no field %q (did you mean %q?)", at, name, near)
	case len(s.props) == 0:
		return fmt.Errorf("%s has no fields", at)
	}
	return fmt.Errorf("%s has no field %q; fields: %s", at, name, strings.Join(s.names(), ", "))
}

func (s *shape) explain(path string, required bool) Explanation {
	return Explanation{
		Path: path, Type: s.typeName(), Description: s.description, Default: s.def, Enum: s.enum,
		Examples: s.examples, Limits: s.bounds(), Required: required,
	}
}

// typeName is the type in words.
func (s *shape) typeName() string {
	switch s.types {
	case "string":
		switch s.format {
		case "go-duration":
			return "duration"
		case "date-time":
			return "time"
		}
		return "text"
	case "integer":
		return "whole number"
	case "array":
		return "list of " + s.items.typeName()
	case "object":
		switch {
		case s.others != nil:
			return "map of " + s.others.typeName()
		case s.open && len(s.props) == 0:
			return "map of anything"
		}
		return "set of fields"
	case "":
		return "anything"
	}
	return s.types
}

// bounds words the limits in a fixed order.
func (s *shape) bounds() []string {
	var out []string
	for _, w := range []struct{ keyword, format string }{
		{"minimum", "at least %s"}, {"maximum", "at most %s"},
		{"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"},
		{"minItems", "at least %s items"}, {"maxItems", "at most %s items"},
	} {
		if n, ok := s.limits[w.keyword]; ok && n != "1" {
			out = append(out, fmt.Sprintf(w.format, n))
		} else if ok {
			out = append(out, strings.TrimSuffix(fmt.Sprintf(w.format, n), "s"))
		}
	}
	return out
}

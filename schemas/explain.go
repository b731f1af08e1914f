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

func (s *shape) explain(path string, required bool) Explanation {
	return Explanation{
		Path: path, Type: s.typeName(), Description: s.description, Default: s.def, Enum: s.enum,
		Examples: s.examples, Limits: s.bounds(), Required: required,
	}
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

// firstClause is the beginning of a description, to stand within a sentence.
func firstClause(s string) string {
	if i := strings.IndexAny(s, ".:;,"); i > 0 {
		s = s[:i]
	}
	return strings.ToLower(s[:1]) + s[1:]
}

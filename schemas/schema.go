package schemas

import (
	"embed"
	"fmt"
	"time"
)

//go:embed *.schema.json
var published embed.FS

// Schema returns the published JSON Schema of a kind (draft 2020-12): the schema of a whole file.
func Schema(k Kind) []byte {
	if k.Schema != nil {
		return k.Schema
	}
	b, err := published.ReadFile(k.Singular() + ".schema.json")
	if err != nil {
		return nil // a kind of a test, which publishes none
	}
	return b
}

// The formats that the published schemas use.
const (
	formatDuration = "go-duration"
	formatTime     = "date-time"
)

// formats are the checks of these, by this package's own parsers.
var formats = map[string]func(string) error{
	formatDuration: func(s string) error { _, err := ParseDuration(s); return err },
	formatTime:     checkTime,
}

// shape is one JSON Schema in the order and the words that people see.
type shape struct {
	types       string
	description string
	def         string // JSON of the default, or ""
	format      string
	enum        []string
	examples    []string
	props       []prop
	required    []string
	items       *shape
	others      *shape // of further fields; nil for none
	open        bool   // further fields are allowed
	limits      map[string]string
}

type prop struct {
	name  string
	shape *shape
}

// parseShape reads a published schema.
func parseShape(schema []byte) (*shape, error) {
	root, err := parseSchema(schema)
	if err != nil {
		return nil, err
	}
	return newShape(root), nil
}

func parseSchema(schema []byte) (*value, error) {
	s := source{path: "schema", text: schema}
	root := s.parseJSON()
	if len(s.problems) > 0 {
		return nil, fmt.Errorf("read the published schema: %w", s.problems[0])
	}
	return root, nil
}

func newShape(v *value) *shape {
	s := &shape{
		types: v.str("type"), description: v.str("description"), format: v.str("format"),
		enum: texts(v.get("enum")), examples: texts(v.get("examples")), required: texts(v.get("required")),
		limits: map[string]string{}, open: v.get("additionalProperties") == nil,
	}
	if d := v.get("default"); d != nil {
		s.def = string(d.canonical(nil, nil))
	}
	if c := v.get("const"); c != nil {
		s.enum = []string{c.text}
	}
	if p := v.get("properties"); p != nil {
		for i := range p.fields {
			s.props = append(s.props, prop{p.fields[i].name, newShape(p.fields[i].value)})
		}
	}
	if i := v.get("items"); i != nil {
		s.items = newShape(i)
	}
	if a := v.get("additionalProperties"); a != nil && a.form == object {
		s.others, s.open = newShape(a), true
	}
	for i := range v.fields {
		if f := v.fields[i]; f.value.form == number {
			s.limits[f.name] = f.value.text
		}
	}
	return s
}

func texts(v *value) []string {
	if v == nil {
		return nil
	}
	out := make([]string, len(v.items))
	for i, item := range v.items {
		out[i] = item.text
	}
	return out
}

// prop returns the shape of a field, or nil.
func (s *shape) prop(name string) *shape {
	for i := range s.props {
		if s.props[i].name == name {
			return s.props[i].shape
		}
	}
	return s.others
}

// names lists the fields that are known by name.
func (s *shape) names() []string {
	out := make([]string, len(s.props))
	for i := range s.props {
		out[i] = s.props[i].name
	}
	return out
}

// checkTime returns the error of an invalid time, in the words of a problem.
func checkTime(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1 || t.UTC().Year() > 9999 || t.UTC().Year() < 1 {
		return fmt.Errorf("%q is not a time in the form 2026-02-27T10:00:00Z", s)
	}
	return nil
}

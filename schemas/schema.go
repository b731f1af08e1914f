package schemas

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas/validator"
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
	orType      string // that a value may have instead; "" for none
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
	if both := texts(v.get("type")); len(both) == 2 {
		s.types, s.orType = both[0], both[1]
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

// kindSchema is the published schema of a kind in three forms. The plan validates quickly. The library decides about all
// documents that the plan does not accept, and the shape has the words to describe the problems; both are made when the first
// such document is read.
type kindSchema struct {
	plan     *plan
	shape    func() (*shape, error)
	compiled func() (*validator.Schema, error)
}

// compile prepares the published schema of a kind.
func compile(k Kind) (*kindSchema, error) {
	text := Schema(k)
	p, err := newPlan(text)
	if err != nil {
		return nil, fmt.Errorf("compile the published schema of %s: %w", k.Name, err)
	}
	return &kindSchema{p, sync.OnceValues(func() (*shape, error) { return parseShape(text) }),
		sync.OnceValues(func() (*validator.Schema, error) { return validator.Compile(text, formats) })}, nil
}

// violations returns what the library finds wrong with a document, in the order of the document.
func (k *kindSchema) violations(root *value) ([]violation, error) {
	compiled, err := k.compiled()
	if err != nil {
		return nil, fmt.Errorf("compile the published schema: %w", err)
	}
	described, err := k.shape()
	if err != nil {
		return nil, err
	}
	found, err := compiled.Validate(plain(root))
	out := make([]violation, len(found))
	for i, v := range found {
		out[i] = resolve(root, described, v)
	}
	slices.SortStableFunc(out, func(a, b violation) int {
		return cmp.Or(a.value.line-b.value.line, a.value.col-b.value.col)
	})
	return out, err
}

// plain converts to the types that the library takes.
func plain(v *value) any {
	switch v.form {
	case boolean:
		return v.text == "true"
	case number:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v.text, 64) // canonical: it was parsed before
		return f
	case text:
		return v.text
	case list:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = plain(item)
		}
		return out
	case object:
		out := make(map[string]any, len(v.fields))
		for i := range v.fields {
			out[cmp.Or(v.fields[i].name, nameless)] = plain(v.fields[i].value)
		}
		return out
	}
	return nil
}

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

// firstSchemaClause is the beginning of a description, to stand within a sentence.
func firstSchemaClause(s string) string {
	if i := strings.IndexAny(s, ".:;,"); i > 0 {
		s = s[:i]
	}
	return strings.ToLower(s[:1]) + s[1:]
}

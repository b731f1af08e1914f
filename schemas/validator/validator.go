// Package validator validates values by JSON Schemas, with santhosh-tekuri/jsonschema: the published schemas of the kinds,
// and schemas of users. It does no I/O: a schema that refers to another document is refused.
package validator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Violation is one keyword of a schema that one value does not keep.
type Violation struct {
	Path    []string // leads from the document to the value: names of fields, and indices of items in decimal
	Keyword string   // the last step to the keyword in the schema: "type", "required", …
	Message string   // the cause, in the library's words
}

// base is where a schema without an $id is said to be, so that no message names a file of this machine.
const base = "reconcile:///schema.json"

// Error is a schema that cannot be used.
type Error struct {
	Path    []string // leads from the schema to the place, where that is known
	Message string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return e.Message
	}
	return "at /" + strings.Join(e.Path, "/") + ": " + e.Message
}

// Compile compiles the text of a schema, which is of draft 2020-12 unless its $schema names another one. Formats are
// asserted; those given are added to the ones of the standard. Every error is an [*Error].
func Compile(schema []byte, formats map[string]func(string) error) (s *Schema, err error) {
	defer func() {
		// The library takes some keywords of a schema for granted before it has checked them.
		if r := recover(); r != nil {
			s, err = nil, &Error{Message: fmt.Sprintf("it cannot be compiled: %v", r)}
		}
	}()
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	c.LoadURL = refuse
	for name, check := range formats {
		c.Formats[name] = func(v any) bool {
			text, ok := v.(string)
			return !ok || check(text) == nil
		}
	}
	if err := c.AddResource(base, bytes.NewReader(schema)); err != nil {
		return nil, newError(err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, newError(err)
	}
	return &Schema{compiled}, nil
}

func refuse(name string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("it refers to %s, and schemas are not fetched from files or the network; put what is needed below $defs",
		strings.TrimPrefix(name, "reconcile:///"))
}

// newError drops the library's name and the schema's address from an error. Of a schema that breaks the rules for schemas it
// keeps the first place.
func newError(err error) *Error {
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		v := violations(invalid, nil)[0]
		return &Error{v.Path, v.Message}
	}
	var compile *jsonschema.SchemaError
	for errors.As(err, &compile) {
		err, compile = compile.Err, nil
	}
	text := strings.ReplaceAll(err.Error(), "jsonschema: ", "")
	return &Error{Message: strings.ReplaceAll(text, base, "")}
}

// Validate validates the value v with the compiled schema, and returns every violation. A value is nil, a boolean, an int64,
// a float64, a json.Number, a string, or a []any or a map[string]any of such values. The order is that of the paths. The
// error says that the schema never ends.
func (s *Schema) Validate(v any) ([]Violation, error) {
	err := s.compiled.Validate(v)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &invalid):
		found := violations(invalid, nil)
		slices.SortFunc(found, func(a, b Violation) int {
			return cmp.Or(slices.CompareFunc(a.Path, b.Path, compareTokens), strings.Compare(a.Keyword, b.Keyword), strings.Compare(a.Message, b.Message))
		})
		return found, nil
	}
	return nil, newError(err)
}

// compareTokens orders indices by their numbers, since those of more digits are larger.
func compareTokens(a, b string) int {
	index := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if index(a) && index(b) {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	}
	return strings.Compare(a, b)
}

// violations appends the leaves of an error: they are the violations, everything above them says where.
func violations(e *jsonschema.ValidationError, to []Violation) []Violation {
	for _, cause := range e.Causes {
		to = violations(cause, to)
	}
	if len(e.Causes) > 0 {
		return to
	}
	v := Violation{Message: e.Message, Keyword: e.AbsoluteKeywordLocation[strings.LastIndexAny(e.AbsoluteKeywordLocation, "/#")+1:]}
	for _, token := range strings.Split(e.InstanceLocation, "/")[1:] {
		v.Path = append(v.Path, unescape(token))
	}
	return append(to, v)
}

// unescape undoes the library's escaping of one token of a JSON pointer.
func unescape(token string) string {
	if t, err := url.PathUnescape(token); err == nil {
		token = t
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// Value decodes a text that is one JSON value, and bounds its numbers, for [Schema.Validate]. A number with an exponent
// becomes a float64; it is an error if it is out of range.
func Value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return bounded(v)
}

// bounded replaces numbers by values of a bounded size: the library computes with all digits of a number, and 1e999999999
// has many. It refuses numbers that are out of the range of float64.
func bounded(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), "eE") {
			return v, nil
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", v)
		}
		return f, nil
	case []any:
		for i := range v {
			if v[i], err = bounded(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = bounded(v[name]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Steps returns the steps of a path of tokens through the value v: names in objects and indices in lists.
func Steps(v any, path []string) []any {
	steps := make([]any, 0, len(path))
	for _, token := range path {
		var step any = token
		switch at := v.(type) {
		case map[string]any:
			v = at[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i < len(at) {
				step, v = i, at[i]
			}
		}
		steps = append(steps, step)
	}
	return steps
}

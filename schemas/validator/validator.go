// Package validator judges values by JSON Schemas, with santhosh-tekuri/jsonschema: the published schemas of the kinds, and
// schemas that users write. It reads nothing but what it is given: a schema that refers to another document is refused.
package validator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
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

// Compile compiles the text of a schema, which is of draft 2020-12 unless its $schema names another one. Formats are
// asserted; those given are added to the ones of the standard.
func Compile(schema []byte, formats map[string]func(string) error) (s *Schema, err error) {
	defer func() {
		// The library takes some keywords of a schema for granted before it has checked them.
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("the schema cannot be compiled: %v", r)
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
		return nil, plainError(err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, plainError(err)
	}
	return &Schema{compiled}, nil
}

func refuse(name string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("it refers to %s, and schemas are not fetched from files or the network; put what is needed below $defs",
		strings.TrimPrefix(name, "reconcile:///"))
}

// plainError drops the library's name and the schema's address from an error. Of a schema that breaks the rules for schemas it
// names the first place.
func plainError(err error) error {
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		v := violations(invalid, nil)[0]
		return fmt.Errorf("at /%s: %s", strings.Join(v.Path, "/"), v.Message)
	}
	var compile *jsonschema.SchemaError
	for errors.As(err, &compile) {
		err = compile.Err
		compile = nil
	}
	text := strings.ReplaceAll(err.Error(), "jsonschema: ", "")
	return errors.New(strings.ReplaceAll(text, base, ""))
}

// Validate returns every violation of a value: nil, a boolean, an int64, a float64, a string, or a []any or a map[string]any
// of such values. The order is not defined. The error says that the schema never ends.
func (s *Schema) Validate(v any) ([]Violation, error) {
	err := s.compiled.Validate(v)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &invalid):
		return violations(invalid, nil), nil
	}
	return nil, plainError(err)
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

package validator_test

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas/validator"
)

func TestValidate(t *testing.T) {
	s, err := validator.Compile([]byte(`{
		"$defs": {"id": {"type": "string", "format": "even"}},
		"properties": {"a/b~c d": {"items": {"$ref": "#/$defs/id"}}, "n": {"multipleOf": 0.5}},
		"additionalProperties": false
	}`), map[string]func(string) error{"even": even})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value any
		want  []string
	}{
		{nil, nil},
		{map[string]any{"a/b~c d": []any{"ab", "cdef"}, "n": 1.5}, nil},
		{map[string]any{"a/b~c d": []any{"ab", "c"}}, []string{"a/b~c d,1 format"}},
		{map[string]any{"a/b~c d": []any{int64(1)}, "n": 0.7, "x": nil},
			[]string{" additionalProperties", "a/b~c d,0 type", "n multipleOf"}},
	} {
		found, err := s.Validate(c.value)
		var got []string
		for _, v := range found {
			if got = append(got, strings.Join(v.Path, ",")+" "+v.Keyword); v.Message == "" {
				t.Errorf("%v: no message", c.value)
			}
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, %v, want %q", c.value, got, err, c.want)
		}
	}
}

type odd struct{}

func (odd) Error() string { return "odd" }

func even(s string) error {
	if len(s)%2 > 0 {
		return odd{}
	}
	return nil
}

// TestRefused: a schema that is not one, or that needs something from elsewhere, is refused with the cause, which names no file
// of this machine.
func TestRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{`:                                  "unexpected EOF",
		`3`:                                  "expected object or boolean",
		`{"type": "text"}`:                   "at /type: ",
		`{"type": ["string"],`:               "unexpected EOF",
		`{"$defs": {"a": {"minimum": "3"}}}`: "at /$defs/a/minimum: expected number, but got string",
		`{"pattern": "("}`:                   "at /pattern: ",
		`{"$ref": "#/$defs/none"}`:           "#/$defs/none not found",
		`{"$ref": "other.json"}`:             "refers to other.json, and schemas are not fetched",
		`{"$ref": "/etc/passwd"}`:            "refers to etc/passwd, and schemas are not fetched",
		`{"$ref": "file:///etc/passwd"}`:     "refers to file:///etc/passwd, and",
		`{"$ref": "https://example.org/a.json#/x"}`:           "refers to https://example.org/a.json, and",
		`{"$id": "https://example.org/b/", "$ref": "a.json"}`: "refers to https://example.org/b/a.json, and",
		`{"$schema": "https://example.org/meta"}`:             "refers to https://example.org/meta, and",
		`{"$schema": 3}`:             "invalid $schema",
		`{"allOf": [{"$ref": "#"}]}`: "infinite loop",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": 3, "$ref": "#/d/e/f"}`: "",
	} {
		_, err := validator.Compile([]byte(schema), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "reconcile://") ||
			strings.Contains(err.Error(), "jsonschema") {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
	for _, schema := range []string{`true`, `{}`, `{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, false]}`,
		`{"$ref": "https://json-schema.org/draft/2020-12/schema"}`, `{"$id": "https://example.org/a", "$ref": "#/$defs/b", "$defs": {"b": {}}}`} {
		if _, err := validator.Compile([]byte(schema), nil); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// FuzzCompile: whatever the schema is, compiling it and judging by it ends without a panic.
func FuzzCompile(f *testing.F) {
	f.Add(`{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}`, "a")
	f.Add(`{"$dynamicRef": "#a", "$defs": {"b": {"$dynamicAnchor": "a"}}}`, "")
	f.Add(`{"$id": "x", "$recursiveRef": 3, "dependencies": {"": [1]}}`, "x")
	f.Fuzz(func(t *testing.T, schema, text string) {
		s, err := validator.Compile([]byte(schema), nil)
		if err != nil {
			return
		}
		for _, v := range []any{nil, text, int64(len(text)), []any{text, text}, map[string]any{text: []any{}}} {
			if _, err := s.Validate(v); err != nil && err.Error() == "" {
				t.Error("an error that says nothing")
			}
		}
	})
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invopop/jsonschema"

	"reconcile.dev/reconcile/schemas"
)

// page fills the generated parts of a kind's page: the example and the table of fields. The rest is written by hand.
func page(root string, k schemas.Kind, doc *jsonschema.Schema) (file, error) {
	name := "docs/kinds/" + k.Singular() + ".md"
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return file{}, fmt.Errorf("every kind has a page: %w", err)
	}
	example, err := os.ReadFile(filepath.Join(root, "examples", k.Singular()+".yaml"))
	if err != nil {
		return file{}, fmt.Errorf("every kind has an example: %w", err)
	}
	_, body, _ := bytes.Cut(example, []byte("\n")) // without the line for editors
	spec, _ := doc.Properties.Get("spec")
	for mark, part := range map[string]string{
		"example": "```yaml\n" + string(body) + "```\n",
		"fields":  table(spec),
	} {
		if text, err = replace(text, mark, part); err != nil {
			return file{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return file{name, text}, nil
}

// replace puts part between the markers <!-- mark --> and <!-- /mark -->.
func replace(text []byte, mark, part string) ([]byte, error) {
	open, end := []byte("<!-- "+mark+" -->\n"), []byte("<!-- /"+mark+" -->")
	before, rest, ok := bytes.Cut(text, open)
	_, after, closed := bytes.Cut(rest, end)
	if !ok || !closed {
		return nil, fmt.Errorf("there are no lines %s and %s", bytes.TrimSpace(open), end)
	}
	return bytes.Join([][]byte{before, open, []byte(part), end, after}, nil), nil
}

// table lists every field below spec.
func table(spec *jsonschema.Schema) string {
	var b strings.Builder
	b.WriteString("| Field | Type | Default | Meaning |\n|---|---|---|---|\n")
	rows(&b, "", spec)
	return b.String()
}

func rows(b *strings.Builder, prefix string, s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		def := defaultOf(p.Value)
		if required[p.Key] {
			def = "required"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, p.Key, typeOf(p.Value), def,
			meaning(p.Value.Description, def != ""))
		if p.Value.Items != nil {
			rows(b, prefix+p.Key+"[].", p.Value.Items)
			continue
		}
		if p.Value.AdditionalProperties != nil {
			rows(b, prefix+p.Key+".NAME.", p.Value.AdditionalProperties)
		}
		rows(b, prefix+p.Key+".", p.Value)
	}
}

// meaning is a description as a cell of the table, without the sentence that the column of defaults repeats.
func meaning(s string, hasDefault bool) string {
	if i := strings.LastIndex(s, " Default "); i > 0 && hasDefault && !strings.Contains(s[i:], ";") {
		s = s[:i]
	}
	return strings.ReplaceAll(s, "|", `\|`)
}

func defaultOf(s *jsonschema.Schema) string {
	if s.Default == nil {
		return ""
	}
	b, err := json.Marshal(s.Default)
	if err != nil {
		return ""
	}
	return "`" + strings.Trim(string(b), `"`) + "`"
}

// typeOf is a type in a word or two, with the values where only some are allowed.
func typeOf(s *jsonschema.Schema) string {
	if both, ok := s.Extras["type"].([]string); ok {
		a, b := *s, *s
		a.Type, a.Extras, b.Type, b.Extras = both[0], nil, both[1], nil
		return typeOf(&a) + " or " + typeOf(&b)
	}
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", e)
		}
		return strings.Join(words, ", ")
	case s.Format == "go-duration":
		return "duration"
	case s.Format == "date-time":
		return "time"
	case s.Type == "array" && s.Items.Properties == nil:
		return "list of " + typeOf(s.Items)
	case s.Type == "array":
		return "list"
	case s.Type == "object" && s.Properties != nil:
		return "fields"
	case s.Type == "object" && s.AdditionalProperties != nil && (s.AdditionalProperties.Type != "" || s.AdditionalProperties.Extras != nil):
		return "map of " + typeOf(s.AdditionalProperties)
	case s.Type == "object":
		return "map"
	case s.Type == "string":
		return "text"
	case s.Type == "integer":
		return "whole number"
	}
	return s.Type
}

// Package document writes values as JSON and YAML, and specs as the files that declare them.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	plainyaml "go.yaml.in/yaml/v2"
	"reconcile.dev/reconcile/schemas"
	"sigs.k8s.io/yaml"
)

// JSON encodes v, indented by two spaces, and writes it to w with hidden characters escaped. Characters that HTML would need
// escaped are written as they are; those that a terminal would act on, or hide, are escaped.
func JSON(w io.Writer, v any) error {
	raw, err := encode(v, "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escapeJSON(raw, inJSON))
	return err
}

func encode(v any, indent string) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("print %T: %w", v, err)
	}
	return b.String(), nil
}

// escapeJSON writes the hidden characters of a document in JSON as \u escapes; those beyond the first plane in the form that astral returns.
// Except for the line feeds of the indentation, they occur in strings only.
func escapeJSON(s string, astral func(r rune) string) string {
	var b strings.Builder
	done := 0
	for i, r := range s {
		if r == '\n' || !Hidden(r) {
			continue
		}
		b.WriteString(s[done:i])
		if r > 0xffff {
			b.WriteString(astral(r))
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		done = i + utf8.RuneLen(r)
	}
	return b.String() + s[done:]
}

// inJSON is a character as a pair of surrogates, inYAML as one escape: neither reads the other's.
func inJSON(r rune) string {
	high, low := utf16.EncodeRune(r)
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}

func inYAML(r rune) string { return fmt.Sprintf(`\U%08x`, r) }

// YAML writes v as one YAML document with sorted keys, by its JSON form, as Kubernetes does. Where that needs escapes of its
// own for hidden characters, which plain YAML text has none for, the JSON form itself is written, which is YAML too but for the
// longest escapes.
func YAML(w io.Writer, v any) error {
	raw, err := encode(v, "")
	if err != nil {
		return err
	}
	if strings.ContainsFunc(raw[:len(raw)-1], Hidden) {
		if raw, err = encode(v, "  "); err == nil {
			_, err = io.WriteString(w, escapeJSON(raw, inYAML))
		}
		return err
	}
	b, err := yaml.JSONToYAML([]byte(raw))
	if err != nil {
		b, err = longKeysToYAML(raw)
	}
	if err != nil {
		return fmt.Errorf("print %T as YAML: %w", v, err)
	}
	_, err = w.Write(b)
	return err
}

// longKeysToYAML is yaml.JSONToYAML for JSON that has keys of more than 1,024 characters, which it cannot read.
func longKeysToYAML(raw string) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return plainyaml.Marshal(exact(v))
}

// exact converts the numbers in a decoded value to types that hold all their digits, where possible. A number that is too
// large for them stays a text.
func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return v.String()
	}
	return v
}

// Hidden reports whether r is a control or format character, or a line or paragraph separator: a terminal would act on it,
// or show nothing for it. Soft hyphens and joiners are not hidden.
func Hidden(r rune) bool {
	const softHyphen, joiner, lineSeparator, paragraphSeparator = '\u00ad', '\u200d', '\u2028', '\u2029'
	switch r {
	case softHyphen, joiner:
		return false
	case lineSeparator, paragraphSeparator:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// envelope is a spec as it is written to a file.
type envelope struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   schemas.Metadata `json:"metadata"`
	Spec       schemas.Spec     `json:"spec"`
}

// Spec encodes the spec of the object ref as a YAML document, with its apiVersion, kind and name.
func Spec(ref schemas.Ref, spec schemas.Spec) ([]byte, error) { return SpecWithLabels(ref, nil, spec) }

// SpecWithLabels encodes a spec as Spec does, with labels.
func SpecWithLabels(ref schemas.Ref, labels map[string]string, spec schemas.Spec) ([]byte, error) {
	e := envelope{APIVersion: schemas.APIVersion, Kind: ref.Kind, Spec: spec}
	e.Metadata.Name, e.Metadata.Labels = ref.Name, labels
	var b bytes.Buffer
	err := YAML(&b, e)
	return b.Bytes(), err
}

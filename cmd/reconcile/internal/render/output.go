package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// JSON writes v indented by two spaces. Characters that HTML would need escaped are written as they are; those that a
// terminal would act on, or hide, are escaped.
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

// escapeJSON writes hidden characters as \u escapes; those beyond the first plane as astral says. Beside the line feeds
// of the indentation, which the encoder makes, they stand in strings only.
func escapeJSON(s string, astral func(r rune) string) string {
	var b strings.Builder
	done := 0
	for i, r := range s {
		if r == '\n' || !hidden(r) {
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

// YAML writes v as one YAML document, by its JSON form. Where that needs escapes of its own for hidden characters,
// which plain YAML text has none for, the JSON form itself is written, which is YAML too but for the longest escapes.
func YAML(w io.Writer, v any) error {
	raw, err := encode(v, "")
	if err != nil {
		return err
	}
	if strings.ContainsFunc(raw[:len(raw)-1], hidden) {
		if raw, err = encode(v, "  "); err == nil {
			_, err = io.WriteString(w, escapeJSON(raw, inYAML))
		}
		return err
	}
	b, err := asYAML(raw)
	if err != nil {
		return fmt.Errorf("print %T as YAML: %w", v, err)
	}
	_, err = w.Write(b)
	return err
}

// asYAML writes a JSON text as YAML, keys sorted.
func asYAML(raw string) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if b, ok := quickYAML(v); ok {
		return b, nil
	}
	return yaml.Marshal(exact(v))
}

// exact gives the numbers in what was decoded the types that hold all their digits, as far as there are such. One that is
// too large for any stays a text.
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

// Age writes a length of time in its one or two largest units, as kubectl does: 45s, 3m, 2h5m, 3d, 2y30d. Below ten
// seconds it keeps a tenth, below a second milliseconds.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day:
		return units(d, day, "d", time.Hour, "h")
	case d < 730*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return units(d, 365*day, "y", day, "d")
}

func units(d, large time.Duration, l string, small time.Duration, s string) string {
	if rest := d % large / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/large, l, rest, s)
	}
	return fmt.Sprintf("%d%s", d/large, l)
}

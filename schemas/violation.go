package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/schemas/validator"
)

// violation is one keyword of the schema that one value does not keep.
type violation struct {
	path     []any
	value    *value
	shape    *shape
	required bool   // the value cannot be left out
	keyword  string // a const counts as an enum of one
	cause    string // in the library's words
}

// wanted says what a schema asks for.
func wanted(s *shape) string {
	switch s.types {
	case "string":
		switch s.format {
		case formatDuration:
			return "a duration such as 10m"
		case formatTime:
			return "a time such as 2026-02-27T10:00:00Z"
		}
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	}
	return "a set of fields"
}

// emptyHint says what to write where nothing is written.
func emptyHint(s *shape, required bool) string {
	hint := "write a value"
	switch s.types {
	case "object":
		hint = "write {}"
	case "array":
		hint = "write []"
	case "string":
		if _, atLeast := s.limits["minLength"]; s.format == "" && !atLeast {
			hint = `write ""`
		}
	}
	if required {
		return hint
	}
	return hint + ", or leave the field out"
}

// describe says what a value is, with the value itself where it is short.
func (v *value) describe() string {
	switch v.form {
	case number:
		return "the number " + v.raw
	case boolean:
		return v.text
	case text:
		return "the text " + quoteShort(v.text)
	}
	return v.form.String()
}

// quoteShort quotes a text, cut to a length that fits into a message.
func quoteShort(s string) string {
	const most = 61
	return strconv.Quote(shorten.Text(s, most))
}

// typeHint says what to write instead, where that can be told.
func (v *value) typeHint(s *shape) string {
	switch {
	case s.types == "string" && s.format == formatDuration && v.form == number:
		return `write the unit too, for example "` + v.raw + `s"`
	case s.types == "string" && s.format == "" && (v.form == number || v.form == boolean):
		return "write " + strconv.Quote(v.raw) + " in quotes"
	case (s.types == "integer" || s.types == "number") && v.form == text && isDecimal(v.text) && !v.bare:
		return "write " + v.text + " without quotes"
	case s.types == "boolean" && v.form == text:
		switch strings.ToLower(v.text) {
		case "yes", "on", "y", "true":
			return "write true"
		case "no", "off", "n", "false":
			return "write false"
		}
	case s.types == "array" && v.form == text && s.items != nil && s.items.types == "string":
		words := strings.Fields(v.text)
		for i, w := range words {
			words[i] = quoteShort(w)
		}
		return "write [" + strings.Join(words, ", ") + "]"
	case s.types == "integer" && v.form == number:
		return "round it"
	}
	return ""
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

// resolve follows the path of a violation through the document and the schema. Where either has nothing more, the violation
// is one of the last value that both have.
func resolve(root *value, s *shape, v validator.Violation) violation {
	x := violation{value: root, shape: s, required: true, keyword: v.Keyword, cause: v.Message}
	if x.keyword == "const" {
		x.keyword = "enum"
	}
	for _, token := range v.Path {
		var step any = strings.TrimPrefix(token, nameless)
		below, shape, required := x.value.get(step.(string)), x.shape.prop(step.(string)), slices.Contains(x.shape.required, token)
		if x.value.form == list {
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(x.value.items) {
				return x
			}
			step, below, shape, required = i, x.value.items[i], x.shape.items, true
		}
		if below == nil || shape == nil {
			return x
		}
		x.path, x.value, x.shape, x.required = append(x.path, step), below, shape, required
	}
	return x
}

func differ(a, b rune) int {
	if a == b {
		return 0
	}
	return 1
}

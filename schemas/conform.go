package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Nearly every document keeps to its schema. conforms finds that out on the document as it was parsed, an order of
// magnitude faster than the validator, which wants other types and walks a general graph of keywords. It only ever says
// yes: what it does not know, or does not like, the validator judges and words. FuzzConforms holds it to the validator.

// rules are the keywords of one schema in the form that conforms compares with.
type rules struct {
	// unsure says that there is something that conforms does not know.
	unsure           bool
	minSize, maxSize int // of a text in characters, of a list in items; maxSize -1: none
	minimum, maximum *int64
	pattern          *regexp.Regexp
	enum             []string
}

// knownKeywords are those that conforms checks, or that say nothing about a value.
var knownKeywords = []string{
	"type", "const", "enum", "format", "pattern", "properties", "required", "items", "additionalProperties", "minLength",
	"maxLength", "minItems", "maxItems", "minimum", "maximum", "$schema", "$id", "title", "description", "default", "examples",
}

// newRules reads a schema's keywords.
func newRules(v *value) rules {
	r := rules{maxSize: -1}
	for i := range v.fields {
		f := &v.fields[i]
		if !slices.Contains(knownKeywords, f.name) || !r.keyword(f.name, f.value) {
			r.unsure = true
		}
	}
	return r
}

// keyword takes in one keyword and reports whether conforms can check it in this form.
func (r *rules) keyword(name string, v *value) bool {
	switch name {
	case "type":
		return v.form == text
	case "const":
		r.enum = append(r.enum, v.text)
		return v.form == text && len(r.enum) == 1
	case "enum":
		texts := len(r.enum) == 0
		for _, item := range v.items {
			r.enum = append(r.enum, item.text)
			texts = texts && item.form == text
		}
		return texts
	case "format":
		return v.text == formatDuration || v.text == formatTime
	case "pattern":
		var err error
		r.pattern, err = regexp.Compile(v.text)
		return err == nil
	case "items", "properties":
		return v.form == object
	case "minLength", "minItems":
		return r.number(v, func(n int64) { r.minSize = max(r.minSize, int(n)) })
	case "maxLength", "maxItems":
		return r.maxSize < 0 && r.number(v, func(n int64) { r.maxSize = int(n) })
	case "minimum":
		return r.number(v, func(n int64) { r.minimum = &n })
	case "maximum":
		return r.number(v, func(n int64) { r.maximum = &n })
	}
	return true
}

func (r *rules) number(v *value, set func(int64)) bool {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.form == number && err == nil {
		set(n)
	}
	return v.form == number && err == nil
}

// The formats of published schemas.
const (
	formatDuration = "go-duration"
	formatTime     = "date-time"
)

// conforms reports that a value certainly keeps to a schema. false means nothing.
func (s *shape) conforms(v *value) bool {
	if s.rules.unsure {
		return false
	}
	switch s.types {
	case "string":
		return v.form == text && s.conformsText(v.text)
	case "boolean":
		return v.form == boolean && len(s.rules.enum) == 0
	case "integer", "number":
		return v.form == number && s.conformsNumber(v)
	case "array":
		return v.form == list && s.conformsList(v)
	case "object":
		return v.form == object && s.conformsObject(v)
	}
	return false
}

func (s *shape) conformsText(t string) bool {
	r := &s.rules
	if len(r.enum) > 0 && !slices.Contains(r.enum, t) {
		return false
	}
	if r.maxSize >= 0 && len(t) > r.maxSize && utf8.RuneCountInString(t) > r.maxSize ||
		r.minSize > 0 && utf8.RuneCountInString(t) < r.minSize {
		return false
	}
	if r.pattern != nil && !r.pattern.MatchString(t) {
		return false
	}
	switch s.format {
	case formatDuration:
		_, err := ParseDuration(t)
		return err == nil
	case formatTime:
		return checkTime(t) == nil
	}
	return true
}

// conformsNumber knows whole numbers only.
func (s *shape) conformsNumber(v *value) bool {
	n, err := strconv.ParseInt(v.text, 10, 64)
	return err == nil && len(s.rules.enum) == 0 && (s.rules.minimum == nil || n >= *s.rules.minimum) &&
		(s.rules.maximum == nil || n <= *s.rules.maximum)
}

func (s *shape) conformsList(v *value) bool {
	if n := len(v.items); n < s.rules.minSize || s.rules.maxSize >= 0 && n > s.rules.maxSize {
		return false
	}
	if s.items == nil || len(s.rules.enum) > 0 {
		return false
	}
	for _, item := range v.items {
		if !s.items.conforms(item) {
			return false
		}
	}
	return true
}

func (s *shape) conformsObject(v *value) bool {
	for _, name := range s.required {
		if v.field(name) == nil {
			return false
		}
	}
	for i := range v.fields {
		if p := s.prop(v.fields[i].name); p == nil || !p.conforms(v.fields[i].value) {
			return false
		}
	}
	return len(s.rules.enum) == 0
}

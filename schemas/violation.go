package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	if s.orType != "" {
		return wantedType(s, s.types) + " or " + wantedType(s, s.orType)
	}
	return wantedType(s, s.types)
}

func wantedType(s *shape, of string) string {
	switch of {
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
	switch near := guessField(name, s.names()); {
	case near != "":
		return fmt.Errorf("%s has no field %q (did you mean %q?)", at, name, near)
	case len(s.props) == 0:
		return fmt.Errorf("%s has no fields", at)
	}
	return fmt.Errorf("%s has no field %q; fields: %s", at, name, strings.Join(s.names(), ", "))
}

// typeName is the type in words.
func (s *shape) typeName() string {
	if s.orType != "" {
		return s.nameOf(s.types) + ", or " + s.nameOf(s.orType)
	}
	return s.nameOf(s.types)
}

func (s *shape) nameOf(of string) string {
	switch of {
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

// nameless replaces empty field names for the library, which does not distinguish such a field from its parent. It cannot
// occur in a text that was read, since it is not UTF-8.
const nameless = "\xff"

// judge holds the document to its kind's schema and reports everything that does not keep it in plain words.
func (s *source) judge(root *value, k *kindSchema, d *damage) {
	if k.plan.accepts(root) {
		return
	}
	found, err := k.violations(root)
	if err != nil {
		s.fail("schema", 0, 0, "", "%v", err)
		return
	}
	j := judge{s: s, root: root, damage: d, said: map[string]bool{}}
	for _, x := range found {
		j.violation(x)
	}
}

type judge struct {
	s      *source
	root   *value
	damage *damage
	said   map[string]bool // paths whose text was found malformed: format and pattern say the same thing
}

// violation reports a violation, unless it was reported by the parser or with the envelope.
func (j *judge) violation(x violation) {
	if x.value.bad || len(x.path) == 0 || isEnvelope(x.path) {
		return
	}
	switch x.keyword {
	case "type":
		j.wrongType(x)
	case "required":
		j.missing(x)
	case "additionalProperties":
		j.unknown(x)
	case "enum":
		j.wrongWord(x)
	case "format", "pattern":
		j.malformed(x)
	case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
		j.outOfRange(x)
	default:
		j.damage.cut(j.root, x.path)
		j.fail("wrong-value", x.path, "%s", x.cause)
	}
}

// fail reports at the value.
func (j *judge) fail(code string, path []any, format string, args ...any) *Problem {
	line, col := j.root.position(path)
	return j.s.fail(code, line, col, pathText(path), format, args...)
}

func (j *judge) wrongType(x violation) {
	j.damage.cut(j.root, x.path)
	want := wanted(x.shape)
	if x.value.form == null {
		j.fail("no-value", x.path, "has no value; expected %s", want).hint("%s", emptyHint(x.shape, x.required))
		return
	}
	p := j.fail("wrong-type", x.path, "expected %s, found %s", want, x.value.describe())
	if h := x.value.typeHint(x.shape); h != "" {
		p.hint("%s", h)
	}
}

func (j *judge) missing(x violation) {
	for _, name := range x.shape.required {
		if x.value.field(name) != nil {
			continue
		}
		below := append(x.path[:len(x.path):len(x.path)], name)
		j.damage.note(below)
		p := j.fail("missing-field", below, "is missing")
		if sh := x.shape.prop(name); sh != nil && sh.description != "" {
			p.hint("add %s: %s", name, firstSchemaClause(sh.description))
		}
	}
}

func (j *judge) unknown(x violation) {
	for i := range x.value.fields {
		f := &x.value.fields[i]
		if x.shape.prop(f.name) != nil || x.shape.open {
			continue
		}
		below := append(x.path[:len(x.path):len(x.path)], f.name)
		j.damage.cut(j.root, below)
		p := j.s.fail("unknown-field", f.line, f.col, pathText(below), "there is no field %q here", f.name)
		p.nearField(f.name, x.shape.names(), j.explained(x.path))
	}
}

// explained returns what reconcile explain is given for a place in the document: "dag.spec.nodes".
func (j *judge) explained(path []any) string {
	at := strings.ToLower(j.root.str("kind"))
	for _, step := range path {
		if name, ok := step.(string); ok {
			at += "." + name
		}
	}
	return at
}

func (j *judge) wrongWord(x violation) {
	j.damage.note(x.path)
	p := j.fail("wrong-value", x.path, "%s is not one of: %s", x.value.describe(), strings.Join(x.shape.enum, ", "))
	if x.value.form == text {
		p.near(x.value.text, x.shape.enum)
	}
}

func (j *judge) malformed(x violation) {
	name := pathText(x.path)
	if j.said[name] {
		return
	}
	j.said[name] = true
	j.damage.cut(j.root, x.path)
	var err error
	switch x.shape.format {
	case formatDuration:
		_, err = ParseDuration(x.value.text)
	case formatTime:
		err = checkTime(x.value.text)
	}
	if err == nil {
		err = fmt.Errorf("%s is not %s", x.value.describe(), wanted(x.shape))
	}
	j.fail("wrong-value", x.path, "%v", err)
}

func (j *judge) outOfRange(x violation) {
	j.damage.note(x.path)
	limit := x.shape.limits[x.keyword]
	length := utf8.RuneCountInString(x.value.text)
	switch x.keyword {
	case "minimum":
		j.fail("out-of-range", x.path, "%s is less than %s", x.value.raw, limit)
	case "maximum":
		j.fail("out-of-range", x.path, "%s is more than %s", x.value.raw, limit)
	case "minLength":
		if length == 0 {
			j.fail("blank", x.path, "is empty")
			return
		}
		j.fail("out-of-range", x.path, "has %s, at least %s are needed", Count(length, "character"), limit)
	case "maxLength":
		j.fail("out-of-range", x.path, "has %s, at most %s are allowed", Count(length, "character"), limit)
	case "minItems":
		if len(x.value.items) == 0 {
			p := j.fail("blank", x.path, "the list is empty").hint("add an item")
			if !x.required {
				p.hint("add an item, or leave the field out")
			}
			return
		}
		j.fail("out-of-range", x.path, "has %s, at least %s are needed", Count(len(x.value.items), "item"), limit)
	case "maxItems":
		j.fail("out-of-range", x.path, "has %s, at most %s are allowed", Count(len(x.value.items), "item"), limit)
	}
}

package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas/shorten"
)

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

// isEnvelope reports whether the field is one that [source.envelope] judges.
func isEnvelope(path []any) bool {
	return len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind")
}

// violation is one keyword of the schema that one value does not keep.
type violation struct {
	path     []any
	value    *value
	shape    *shape
	required bool   // the value cannot be left out
	keyword  string // a const counts as an enum of one
	cause    string // in the library's words
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

func (j *judge) missing(x violation) {
	for _, name := range x.shape.required {
		if x.value.field(name) != nil {
			continue
		}
		below := append(x.path[:len(x.path):len(x.path)], name)
		j.damage.note(below)
		p := j.fail("missing-field", below, "is missing")
		if sh := x.shape.prop(name); sh != nil && sh.description != "" {
			p.hint("add %s: %s", name, firstClause(sh.description))
		}
	}
}

// firstClause is the beginning of a description, to stand within a sentence.
func firstClause(s string) string {
	if i := strings.IndexAny(s, ".:;,"); i > 0 {
		s = s[:i]
	}
	return strings.ToLower(s[:1]) + s[1:]
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
		if p.near(f.name, x.shape.names()); p.Suggestion == "" {
			p.hint("fields: %s", strings.Join(x.shape.names(), ", "))
		}
	}
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

// damage records the unusable parts of a document, so that the rest of it can still be checked without problems
// that only follow from reported ones.
type damage struct {
	skip   map[*value]bool // values to leave out
	at     map[string]bool // paths that are broken
	above  map[string]bool // their ancestors
	naming bool            // the name of some task is broken: needs cannot be judged
	whole  bool            // nothing is left to check
}

// note marks a path as broken.
func (d *damage) note(path []any) {
	if d.at == nil {
		d.at, d.above, d.skip = map[string]bool{}, map[string]bool{}, map[*value]bool{}
	}
	d.at[pathText(path)] = true
	for i := range path {
		d.above[pathText(path[:i])] = true
	}
	last := path[len(path)-1]
	d.naming = d.naming || len(path) == 4 && (last == "name" || last == "id")
	d.whole = d.whole || len(path) == 1 && last == "spec"
}

// cut marks a path as broken and leaves out the field that it is in.
func (d *damage) cut(root *value, path []any) {
	d.note(path)
	for len(path) > 1 {
		if _, ok := path[len(path)-1].(string); ok {
			break
		}
		path = path[:len(path)-1]
	}
	d.whole = d.whole || len(path) <= 1
	if v := root.at(path); v != nil {
		d.skip[v] = true
	}
}

// scan marks everything that could not be parsed.
func (d *damage) scan(root, v *value, path []any) {
	if v.bad {
		if len(path) == 0 {
			d.whole = true
			return
		}
		d.cut(root, path)
		return
	}
	for i := range v.fields {
		d.scan(root, v.fields[i].value, append(path[:len(path):len(path)], v.fields[i].name))
	}
	for i := range v.items {
		d.scan(root, v.items[i], append(path[:len(path):len(path)], i))
	}
}

// covers reports whether a finding at a path may only follow from the damage.
func (d *damage) covers(f *Finding, path []any) bool {
	if d.at == nil {
		return false
	}
	if d.above[pathText(path)] || d.naming && f.Code == "unknown-need" {
		return true
	}
	for i := range path {
		if d.at[pathText(path[:i+1])] {
			return true
		}
	}
	return false
}

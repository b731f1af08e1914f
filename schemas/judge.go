package schemas

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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
			p.hint("add %s: %s", name, firstClause(sh.description))
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

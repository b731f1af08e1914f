package schemas

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A published schema is compiled to a plan, which says whether a document keeps the schema: nearly every document does, and
// the library takes a quarter of the time of reading the tree to find that out. What a plan does not accept is judged by the
// library (see [kindSchema]). A schema with a keyword that is not known here has no plan, which a test finds.

// plan is a published schema, or a part of one, prepared to validate. Its parts are prepared when the first document contains them: a
// run reads a few files, which use a few fields.
type plan struct {
	unknown error // why nothing can be judged by it
	any     bool  // every value is right
	form    form
	other   form // that a value may have instead; null for none

	whole     bool // of a number: an integer
	low, high *int64

	words  []string            // of a text: all that it may be; nil for anything
	checks []func(string) bool // of a text: formats and patterns

	least, most int // characters of a text, items of a list; most is -1 without a limit

	items func() *plan // of a list; nil for anything

	fields   []planField
	required int          // how many of the fields must be there
	others   func() *plan // of fields that are not named; nil for anything, where open says that there may be any
	open     bool
}

type planField struct {
	name     string
	required bool
	plan     func() *plan
}

// planForms are the types of JSON Schema; an integer is a number.
var planForms = map[string]form{
	"null": null, "boolean": boolean, "number": number, "integer": number, "string": text, "array": list, "object": object,
}

// newPlan makes the plan of a schema, which must be valid JSON. The error names the keyword that no plan can judge by; those of
// the parts are in their plans.
func newPlan(schema []byte) (*plan, error) {
	p := &plan{most: -1, open: true}
	fields, ok := jsonFields(schema)
	if !ok {
		if p.any = string(schema) == "true"; p.any {
			return p, nil
		}
		v, err := parseSchema(schema)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("is %s, not a schema with a type", v.form)
	}
	var types, required []string
	for _, f := range fields {
		switch f.name {
		case "type":
			types = words(f.text)
		case "required":
			required = words(f.text)
		}
	}
	if p.any = len(types) == 0; p.any {
		return p, nil
	}
	if !p.setForms(types) {
		return nil, fmt.Errorf("the type %q is not known", strings.Join(types, ", "))
	}
	for _, f := range fields {
		if err := p.keyword(f.name, f.text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if !p.require(required) {
		return nil, fmt.Errorf("required names a field twice, or one that has no schema")
	}
	return p, nil
}

// later returns a function that makes the plan when it is needed first.
func later(schema []byte) func() *plan {
	return sync.OnceValue(func() *plan {
		p, err := newPlan(schema)
		if err != nil {
			return &plan{unknown: err}
		}
		return p
	})
}

// words are a text or a list of texts in JSON.
func words(text []byte) []string {
	v, err := parseSchema(text)
	if err != nil {
		return nil
	}
	if v.form == list {
		return texts(v)
	}
	return []string{v.text}
}

func (p *plan) setForms(types []string) (known bool) {
	p.form, known = planForms[types[0]]
	p.whole = types[0] == "integer"
	if len(types) == 2 {
		p.other = planForms[types[1]]
		known = known && p.other > number && p.other != p.form
	}
	return known && len(types) <= 2
}

// is reports whether a value may have a form.
func (p *plan) is(f form) bool { return p.form == f || p.other == f && f != null }

// keyword adds one keyword; the error reports an unknown keyword or value.
func (p *plan) keyword(name string, text []byte) error {
	switch name {
	case "$schema", "$id", "title", "description", "default", "examples", "type", "required":
		return nil // says nothing, or is read elsewhere
	case "items":
		p.items = later(text)
		return nil
	case "properties":
		return p.properties(text)
	}
	if name == "additionalProperties" {
		if p.open = string(text) != "false"; p.open && string(text) != "true" {
			p.others = later(text)
		}
		return nil
	}
	if v, err := parseSchema(text); err != nil || !p.constraint(name, v) {
		return fmt.Errorf("not known here with this value, or for this type")
	}
	return nil
}

// constraint adds a keyword about a value itself; false if the keyword or its value is unknown.
func (p *plan) constraint(name string, v *value) bool {
	switch name {
	case "const":
		p.words = []string{v.text}
		return p.form == text && v.form == text
	case "enum":
		p.words = texts(v)
		return p.is(text) && !slices.ContainsFunc(v.items, func(w *value) bool { return w.form != text })
	case "format", "pattern":
		return p.is(text) && p.check(name, v.text)
	case "minLength", "minItems":
		return p.counted(name) && setCount(&p.least, v)
	case "maxLength", "maxItems":
		return p.counted(name) && setCount(&p.most, v)
	case "minimum":
		return p.form == number && setLimit(&p.low, v)
	case "maximum":
		return p.form == number && setLimit(&p.high, v)
	}
	return false
}

func (p *plan) check(keyword, is string) bool {
	if keyword == "format" {
		check := formats[is]
		p.checks = append(p.checks, func(s string) bool { return check(s) == nil })
		return check != nil
	}
	pattern, err := regexp.Compile(is)
	if err != nil {
		return false
	}
	p.checks = append(p.checks, pattern.MatchString)
	return true
}

// counted reports whether a bound of a length is about what the plan is for: it is one of texts, or one of lists.
func (p *plan) counted(keyword string) bool {
	if strings.HasSuffix(keyword, "Items") {
		return p.is(list)
	}
	return p.is(text)
}

func setCount(to *int, v *value) bool {
	n, err := strconv.Atoi(v.text)
	*to = n
	return err == nil && v.form == number
}

// setLimit takes limits that are integers only: those compare alike whatever a number is kept in.
func setLimit(to **int64, v *value) bool {
	n, err := strconv.ParseInt(v.text, 10, 64)
	*to = &n
	return err == nil && v.form == number && -maxExact <= n && n <= maxExact
}

func (p *plan) properties(schemas []byte) error {
	fields, ok := jsonFields(schemas)
	if !ok {
		return fmt.Errorf("has no schemas by name")
	}
	p.fields = make([]planField, len(fields))
	for i, f := range fields {
		p.fields[i] = planField{name: f.name, plan: later(f.text)}
	}
	return nil
}

// require marks the fields that must be there. One that is not named among the properties is not known.
func (p *plan) require(names []string) bool {
	for _, name := range names {
		i := slices.IndexFunc(p.fields, func(f planField) bool { return f.name == name })
		if i < 0 || p.fields[i].required {
			return false
		}
		p.fields[i].required = true
		p.required++
	}
	return true
}

// accepts reports whether the value keeps the schema. A value that was reported already is not accepted.
func (p *plan) accepts(v *value) bool {
	switch {
	case v.bad || p.unknown != nil:
		return false
	case p.any:
		return true
	case !p.keeps(v):
		return false
	}
	switch v.form {
	case list:
		return p.items == nil || !slices.ContainsFunc(v.items, func(item *value) bool { return !p.items().accepts(item) })
	case object:
		return p.acceptsFields(v.fields)
	}
	return true
}

func (p *plan) acceptsFields(fields []field) bool {
	required, next := 0, 0
	for i := range fields {
		f := &fields[i]
		at := p.find(f.name, next)
		switch {
		case at >= 0:
			if !p.fields[at].plan().accepts(f.value) {
				return false
			}
			if next = at + 1; p.fields[at].required {
				required++
			}
		case p.others != nil && !p.others().accepts(f.value), p.others == nil && !p.open:
			return false
		}
	}
	return required == p.required // no field is there twice
}

// keeps reports whether a value satisfies the schema, ignoring its children.
func (p *plan) keeps(v *value) bool {
	if !p.is(v.form) {
		return false
	}
	switch v.form {
	case number:
		return p.keepsNumber(v.text)
	case text:
		return p.keepsText(v.text)
	case list:
		return p.within(len(v.items))
	}
	return true
}

// keepsNumber takes the canonical form of a number.
func (p *plan) keepsNumber(s string) bool {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return (p.low == nil || n >= *p.low) && (p.high == nil || n <= *p.high)
	}
	f, _ := strconv.ParseFloat(s, 64) // it was one when it was read
	return (!p.whole || f == math.Trunc(f)) && (p.low == nil || f >= float64(*p.low)) && (p.high == nil || f <= float64(*p.high))
}

func (p *plan) keepsText(s string) bool {
	if (p.least > 0 || p.most >= 0) && !p.within(utf8.RuneCountInString(s)) {
		return false
	}
	if p.words != nil && !slices.Contains(p.words, s) {
		return false
	}
	return !slices.ContainsFunc(p.checks, func(keeps func(string) bool) bool { return !keeps(s) })
}

// within reports whether n characters or items keep the bounds.
func (p *plan) within(n int) bool { return n >= p.least && (p.most < 0 || n <= p.most) }

// find returns the index of a named field, or -1. It looks from next on first: most files keep the order of the schema.
func (p *plan) find(name string, next int) int {
	for n := range p.fields {
		if i := (next + n) % len(p.fields); p.fields[i].name == name {
			return i
		}
	}
	return -1
}

// form says what a value of a document is.
type form uint8

func (f form) String() string {
	return [...]string{"nothing", "true or false", "a number", "text", "a list", "a set of fields"}[f]
}

func keepForm(v *value, ok bool) *value {
	if ok {
		return v
	}
	return nil
}

package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nearly every document keeps its schema, and to learn just that takes a general validator a quarter of the time of
// reading the tree: it wants maps, and keeps track of what it would have to say. A plan answers only whether a document
// certainly keeps the schema, on the values as they were parsed. Whatever it does not accept, and every document of a
// kind whose schema has a keyword that is not known here, the validator judges. FuzzPlan holds the one to the other.

// plan is a published schema, or a part of one, prepared for that question.
type plan struct {
	form form

	whole     bool // of a number: an integer
	low, high *int64

	words  []string            // of a text: all that it may be; nil for anything
	checks []func(string) bool // of a text: its format, its pattern

	least, most int // characters of a text, items of a list; most is -1 without a limit

	items *plan // of a list; nil for anything

	fields   []planField
	required int   // how many of the fields must be there
	others   *plan // of fields that are not named; nil for anything, where open says that there may be any
	open     bool
}

type planField struct {
	name     string
	required bool
	plan     *plan
}

// planForms are the types of JSON Schema; an integer is a number.
var planForms = map[string]form{
	"null": null, "boolean": boolean, "number": number, "integer": number, "string": text, "array": list, "object": object,
}

// newPlan makes the plan of a parsed schema; nil when it uses something that is not known here.
func newPlan(schema *value) *plan {
	p := &plan{most: -1, open: true}
	if schema.form != object || !p.setForm(schema.str("type")) {
		return nil
	}
	for i := range schema.fields {
		if f := &schema.fields[i]; !p.keyword(f.name, f.value) {
			return nil
		}
	}
	if !p.require(schema.get("required")) {
		return nil
	}
	return p
}

func (p *plan) setForm(name string) (known bool) {
	p.form, known = planForms[name]
	p.whole = name == "integer"
	return known
}

// keyword takes in one keyword; false if it, or what it says, is not known.
func (p *plan) keyword(name string, v *value) bool {
	switch name {
	case "$schema", "$id", "title", "description", "default", "examples", "type", "required":
		return true // says nothing, or is read elsewhere
	case "const":
		p.words = []string{v.text}
		return p.form == text && v.form == text
	case "enum":
		p.words = texts(v)
		return p.form == text && !slices.ContainsFunc(v.items, func(w *value) bool { return w.form != text })
	case "format", "pattern":
		return p.check(name, v.text)
	case "minLength", "minItems":
		return p.counted(name) && setCount(&p.least, v)
	case "maxLength", "maxItems":
		return p.counted(name) && setCount(&p.most, v)
	case "minimum":
		return setLimit(&p.low, v)
	case "maximum":
		return setLimit(&p.high, v)
	case "items":
		p.items = newPlan(v)
		return p.items != nil
	case "properties":
		return p.properties(v)
	case "additionalProperties":
		return p.additional(v)
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
		return p.form == list
	}
	return p.form == text
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

func (p *plan) properties(v *value) bool {
	for i := range v.fields {
		below := newPlan(v.fields[i].value)
		if below == nil {
			return false
		}
		p.fields = append(p.fields, planField{name: v.fields[i].name, plan: below})
	}
	return v.form == object
}

func (p *plan) additional(v *value) bool {
	if v.form == boolean {
		p.open = v.text == "true"
		return true
	}
	p.others = newPlan(v)
	return p.others != nil
}

// require marks the fields that must be there. One that is not named among the properties is not known.
func (p *plan) require(names *value) bool {
	for _, name := range texts(names) {
		i := slices.IndexFunc(p.fields, func(f planField) bool { return f.name == name })
		if i < 0 || p.fields[i].required {
			return false
		}
		p.fields[i].required = true
		p.required++
	}
	return true
}

// accepts reports whether the value certainly keeps the schema. A value that was reported already is not accepted.
func (p *plan) accepts(v *value) bool {
	if p == nil || v.bad || v.form != p.form {
		return false
	}
	switch v.form {
	case number:
		return p.acceptsNumber(v.text)
	case text:
		return p.acceptsText(v.text)
	case list:
		return p.acceptsItems(v.items)
	case object:
		return p.acceptsFields(v.fields)
	}
	return true
}

// acceptsNumber takes the canonical form of a number.
func (p *plan) acceptsNumber(s string) bool {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return (p.low == nil || n >= *p.low) && (p.high == nil || n <= *p.high)
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && !p.whole && (p.low == nil || f >= float64(*p.low)) && (p.high == nil || f <= float64(*p.high))
}

func (p *plan) acceptsText(s string) bool {
	if p.words != nil && !slices.Contains(p.words, s) {
		return false
	}
	if (p.least > 0 || p.most >= 0) && !p.counts(utf8.RuneCountInString(s)) {
		return false
	}
	for _, check := range p.checks {
		if !check(s) {
			return false
		}
	}
	return true
}

func (p *plan) counts(n int) bool { return n >= p.least && (p.most < 0 || n <= p.most) }

func (p *plan) acceptsItems(items []*value) bool {
	if !p.counts(len(items)) {
		return false
	}
	if p.items == nil {
		return true
	}
	for _, item := range items {
		if !p.items.accepts(item) {
			return false
		}
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
			if !p.fields[at].plan.accepts(f.value) {
				return false
			}
			if next = at + 1; p.fields[at].required {
				required++
			}
		case p.others != nil && !p.others.accepts(f.value), p.others == nil && !p.open:
			return false
		}
	}
	return required == p.required // no field is there twice
}

// find returns the index of a named field, or -1. It looks from next on first: most files keep the order of the schema.
func (p *plan) find(name string, next int) int {
	for n := range p.fields {
		if i := (next + n) % len(p.fields); p.fields[i].name == name {
			return i
		}
	}
	return -1
}

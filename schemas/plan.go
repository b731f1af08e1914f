package schemas

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A published schema is compiled to a plan, which judges values as they were parsed, in two walks. The first only asks
// whether a document keeps the schema: nearly every document does, and a general validator takes a quarter of the time of
// reading the tree to find that out. The second tells of everything that a document does not keep. What a value breaks by
// itself is decided in one place for both. A schema with a keyword that is not known here has no plan, which a test finds.
//
// A general validator, which the tests hold both walks to, takes milliseconds to start: the program does without it.

// plan is a published schema, or a part of one, prepared to judge.
type plan struct {
	shape *shape // what the schema says to people
	form  form

	whole     bool // of a number: an integer
	low, high *int64

	words  []string    // of a text: all that it may be; nil for anything
	checks []planCheck // of a text

	least, most int // characters of a text, items of a list; most is -1 without a limit

	items *plan // of a list; nil for anything

	fields   []planField
	required int   // how many of the fields must be there
	others   *plan // of fields that are not named; nil for anything, where open says that there may be any
	open     bool
}

// planCheck is a format or a pattern.
type planCheck struct {
	keyword string
	keeps   func(string) bool
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

// newPlan makes the plan of a parsed schema and its shape. The error names the keyword that no plan can judge by.
func newPlan(schema *value, sh *shape) (*plan, error) {
	p := &plan{shape: sh, most: -1, open: true}
	if schema.form != object {
		return nil, fmt.Errorf("is %s, not a schema with a type", schema.form)
	}
	if !p.setForm(sh.types) {
		return nil, fmt.Errorf("the type %q is not known", sh.types)
	}
	for i := range schema.fields {
		if err := p.keyword(schema.fields[i].name, schema.fields[i].value); err != nil {
			return nil, err
		}
	}
	if !p.require(sh.required) {
		return nil, fmt.Errorf("required names a field twice, or one that has no schema")
	}
	return p, nil
}

func (p *plan) setForm(name string) (known bool) {
	p.form, known = planForms[name]
	p.whole = name == "integer"
	return known
}

// keyword takes in one keyword; the error says that it, or what it says, is not known.
func (p *plan) keyword(name string, v *value) (err error) {
	switch name {
	case "items":
		p.items, err = newPlan(v, p.shape.items)
	case "properties":
		err = p.properties(v)
	case "additionalProperties":
		if v.form == boolean {
			p.open = v.text == "true"
			return nil
		}
		p.others, err = newPlan(v, p.shape.others)
	default:
		if !p.constraint(name, v) {
			err = fmt.Errorf("not known here with this value, or for this type")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// constraint takes in a keyword about a value itself; false if it, or what it says, is not known.
func (p *plan) constraint(name string, v *value) bool {
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
		return p.form == text && p.check(name, v.text)
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
		p.checks = append(p.checks, planCheck{keyword, func(s string) bool { return check(s) == nil }})
		return check != nil
	}
	pattern, err := regexp.Compile(is)
	if err != nil {
		return false
	}
	p.checks = append(p.checks, planCheck{keyword, pattern.MatchString})
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

func (p *plan) properties(v *value) error {
	if v.form != object {
		return fmt.Errorf("is %s, not schemas by name", v.form)
	}
	for i := range v.fields {
		below, err := newPlan(v.fields[i].value, p.shape.props[i].shape)
		if err != nil {
			return fmt.Errorf("%s: %w", v.fields[i].name, err)
		}
		p.fields = append(p.fields, planField{name: v.fields[i].name, plan: below})
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
	if v.bad || p.breaks(v) != nil {
		return false
	}
	switch v.form {
	case list:
		return p.items == nil || !slices.ContainsFunc(v.items, func(item *value) bool { return !p.items.accepts(item) })
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

// explain tells of every keyword that the value at x, or a value below it, does not keep.
func (p *plan) explain(x violation, tell func(violation)) {
	x.shape = p.shape
	for _, x.keyword = range p.breaks(x.value) {
		tell(x)
	}
	if x.value.form != p.form {
		return
	}
	if p.items != nil {
		for i, item := range x.value.items {
			p.items.explain(x.below(i, item, true), tell)
		}
	}
	if p.form == object {
		p.explainFields(x, tell)
	}
}

func (p *plan) explainFields(x violation, tell func(violation)) {
	required, unknown := 0, false
	for i := range x.value.fields {
		f := &x.value.fields[i]
		switch at := p.find(f.name, i); {
		case at >= 0:
			below := &p.fields[at]
			if below.required {
				required++
			}
			below.plan.explain(x.below(f.name, f.value, below.required), tell)
		case p.others != nil:
			p.others.explain(x.below(f.name, f.value, false), tell)
		default:
			unknown = !p.open
		}
	}
	if x.keyword = "required"; required < p.required {
		tell(x)
	}
	if x.keyword = "additionalProperties"; unknown {
		tell(x)
	}
}

// breaks returns the keywords that a value by itself does not keep, whatever is below it; nil for none.
func (p *plan) breaks(v *value) []string {
	if v.form != p.form {
		return []string{"type"}
	}
	switch v.form {
	case number:
		return p.breaksNumber(v.text)
	case text:
		return p.breaksText(v.text)
	case list:
		return p.miscounts(len(v.items), "minItems", "maxItems")
	}
	return nil
}

// breaksNumber takes the canonical form of a number.
func (p *plan) breaksNumber(s string) (broken []string) {
	less, more := false, false
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		less, more = p.low != nil && n < *p.low, p.high != nil && n > *p.high
	} else {
		f, _ := strconv.ParseFloat(s, 64) // it was one when it was read
		if p.whole && f != math.Trunc(f) {
			return []string{"type"}
		}
		less, more = p.low != nil && f < float64(*p.low), p.high != nil && f > float64(*p.high)
	}
	if less {
		broken = append(broken, "minimum")
	}
	if more {
		broken = append(broken, "maximum")
	}
	return broken
}

func (p *plan) breaksText(s string) (broken []string) {
	if p.least > 0 || p.most >= 0 {
		broken = p.miscounts(utf8.RuneCountInString(s), "minLength", "maxLength")
	}
	if p.words != nil && !slices.Contains(p.words, s) {
		broken = append(broken, "enum")
	}
	for _, check := range p.checks {
		if !check.keeps(s) {
			broken = append(broken, check.keyword)
		}
	}
	return broken
}

// miscounts returns the keyword of the bound that n characters or items do not keep; nil for none.
func (p *plan) miscounts(n int, least, most string) []string {
	switch {
	case n < p.least:
		return []string{least}
	case p.most >= 0 && n > p.most:
		return []string{most}
	}
	return nil
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

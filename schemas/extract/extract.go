// Package extract reads values of JSON documents by short expressions: data in specs says where programs put what they report.
//
//	result                                the member result
//	usage.input_tokens                    a member of a member
//	message.content[type=text].text       of the elements of an array, or the members of an object, those with type "text"
//	stats.models.*.tokens.prompt          of every element or member
//	stats.models.@name                    the names of the members
//	a.b | c.d                             the first alternative that has a value
//	usage.input + usage.cached            the sum of numbers; a missing one counts as zero unless all are missing
//
// In brackets, = and != compare a scalar member's text. Evaluation is linear in the size of the document.
package extract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Expr is a parsed expression. The zero Expr has no values.
type Expr struct{ alternatives []sum }

type sum []path

type path []step

type step struct {
	name       string // a member; * for all; @name for the names of the members
	key, value string // the condition; key "" for none
	not        bool
}

const (
	every = "*"
	names = "@name"
)

var stepPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\*|@name|[A-Za-z0-9_$-]+)(?:\[([A-Za-z0-9_$-]+)(!?=)([^\[\]=!.|+]*)\])?$`)
})

// Parse parses an expression. The empty text is the zero Expr.
func Parse(text string) (e Expr, err error) {
	if text == "" {
		return e, nil
	}
	for alternative := range strings.SplitSeq(text, "|") {
		var s sum
		for term := range strings.SplitSeq(alternative, "+") {
			var p path
			for part := range strings.SplitSeq(strings.TrimSpace(term), ".") {
				m := stepPattern().FindStringSubmatch(part)
				if m == nil {
					return Expr{}, fmt.Errorf("%q is not a step of a path: a member's name, * or @name, perhaps with [member=value]", part)
				}
				p = append(p, step{name: m[1], key: m[2], value: m[4], not: m[3] == "!="})
			}
			s = append(s, p)
		}
		e.alternatives = append(e.alternatives, s)
	}
	return e, nil
}

// Texts returns all scalar values of the first alternative with a value, as text.
func (e Expr) Texts(doc any) (texts []string) {
	for _, s := range e.alternatives {
		for _, p := range s {
			p.walk(doc, func(v any) {
				if t, ok := scalar(v); ok && t != "" {
					texts = append(texts, t)
				}
			})
		}
		if len(texts) > 0 {
			return texts
		}
	}
	return nil
}

// Text returns the last of Texts; "" for none.
func (e Expr) Text(doc any) string {
	texts := e.Texts(doc)
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// Items returns the elements of all lists of the first alternative with a value, and the values that are no lists.
func (e Expr) Items(doc any) (items []any) {
	for _, s := range e.alternatives {
		for _, p := range s {
			p.walk(doc, func(v any) {
				if list, ok := v.([]any); ok {
					items = append(items, list...)
				} else {
					items = append(items, v)
				}
			})
		}
		if len(items) > 0 {
			return items
		}
	}
	return nil
}

// Number returns the sum of all numbers of the first alternative with a value; ok is false without a number.
func (e Expr) Number(doc any) (total float64, ok bool) {
	for _, s := range e.alternatives {
		for _, p := range s {
			p.walk(doc, func(v any) {
				n, isNumber := v.(json.Number)
				if f, err := n.Float64(); isNumber && err == nil && !math.IsInf(f, 0) {
					total, ok = total+f, true
				}
			})
		}
		if ok {
			return total, true
		}
	}
	return 0, false
}

// walk calls take for every value of the path. doc is decoded with json.Decoder.UseNumber.
func (p path) walk(doc any, take func(any)) {
	if len(p) == 0 {
		take(doc)
		return
	}
	s := p[0]
	for _, v := range s.members(doc) {
		switch list := v.(type) {
		case []any:
			if s.key == "" {
				p[1:].walk(v, take)
				continue
			}
			for _, element := range list {
				if s.holds(element) {
					p[1:].walk(element, take)
				}
			}
		default:
			if s.holds(v) {
				p[1:].walk(v, take)
			}
		}
	}
}

func (s step) members(doc any) []any {
	switch doc := doc.(type) {
	case []any:
		if s.name == every {
			return doc
		}
	case map[string]any:
		switch s.name {
		case every:
			var all []any
			for _, k := range slices.Sorted(maps.Keys(doc)) {
				all = append(all, doc[k])
			}
			return all
		case names:
			var all []any
			for _, k := range slices.Sorted(maps.Keys(doc)) {
				all = append(all, k)
			}
			return all
		}
		if v, ok := doc[s.name]; ok {
			return []any{v}
		}
	}
	return nil
}

func (s step) holds(v any) bool {
	if s.key == "" {
		return true
	}
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	text, _ := scalar(m[s.key])
	return (text == s.value) != s.not
}

// scalar returns the text of a JSON scalar.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

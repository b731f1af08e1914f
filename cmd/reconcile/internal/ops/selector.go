package ops

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// selector is a label selector.
type selector []requirement

// requirement is one part of a selector: key=value, key!=value, key in (values), key notin (values), key or !key.
type requirement struct {
	key    string
	values []string
	any    bool // any value matches
	not    bool
}

// requirements match the parts of a selector: the key, the operator and the values.
var requirements = sync.OnceValue(func() []*regexp.Regexp {
	const key, value = `([^\s=!,()]+)`, `([^\s=!,()]*)`
	return []*regexp.Regexp{
		regexp.MustCompile(`^` + key + `\s*(==?|!=)\s*` + value + `$`),
		regexp.MustCompile(`^` + key + `\s+(in|notin)\s*\(([^()]*)\)$`),
		regexp.MustCompile(`^(!?)\s*` + key + `$`),
	}
})

// parseSelector parses "a=b,c!=d,e,!f,g in (h,i),j notin (k)".
func parseSelector(s string) (selector, error) {
	var out selector
	for _, part := range selectorParts(s) {
		r, ok := parseRequirement(part)
		if !ok {
			return nil, badField("selector", " %q: %q selects no label; write a=b, a!=b, a, !a, a in (b,c) or a notin (b,c)", s, part)
		}
		out = append(out, r)
	}
	return out, nil
}

// selectorParts splits a selector at its commas outside of brackets.
func selectorParts(s string) (parts []string) {
	start, depth := 0, 0
	add := func(end int) {
		if part := strings.TrimSpace(s[start:end]); part != "" {
			parts = append(parts, part)
		}
		start = end + 1
	}
	for i, c := range []byte(s) {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			add(i)
		}
	}
	add(len(s))
	return parts
}

func parseRequirement(part string) (r requirement, ok bool) {
	are := requirements()
	if m := are[0].FindStringSubmatch(part); m != nil {
		return requirement{key: m[1], values: m[3:], not: m[2] == "!="}, true
	}
	if m := are[1].FindStringSubmatch(part); m != nil {
		r = requirement{key: m[1], not: m[2] == "notin"}
		for value := range strings.SplitSeq(m[3], ",") {
			r.values = append(r.values, strings.TrimSpace(value))
		}
		return r, true
	}
	m := are[2].FindStringSubmatch(part)
	if m == nil {
		return r, false
	}
	return requirement{key: m[2], any: true, not: m[1] != ""}, true
}

func (s selector) matches(labels map[string]string) bool {
	for _, r := range s {
		value, has := labels[r.key]
		if match := has && (r.any || slices.Contains(r.values, value)); match == r.not {
			return false
		}
	}
	return true
}

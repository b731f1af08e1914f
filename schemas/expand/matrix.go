package expand

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
)

// element is a node that a matrix makes.
type element struct {
	name   string
	values map[string]any
}

// maxCombinations bounds the combinations before some are left out.
const maxCombinations = 100_000

// elements returns the elements of a matrix in the order of their declaration. open names the node that has to succeed first;
// problem says why its result makes no elements.
func (s *scope) elements(n *schemas.Node) (out []element, open []string, problem string) {
	m := n.Matrix
	var all []map[string]any
	if m.From == "" {
		all = s.combinations(n)
	} else if all, open, problem = s.listed(m.From); open != nil || problem != "" {
		return nil, open, problem
	}
	all = slices.DeleteFunc(all, func(v map[string]any) bool {
		return slices.ContainsFunc(m.Exclude, func(x map[string]any) bool { return has(v, x) })
	})
	for _, more := range m.Include {
		if !slices.ContainsFunc(all, func(v map[string]any) bool { return reflect.DeepEqual(v, more) }) {
			all = append(all, more)
		}
	}
	if len(all) > m.Max {
		problem = fmt.Sprintf("the matrix of %s has %d elements; at most %d are allowed: raise matrix.max, or exclude some", n.Name, len(all), m.Max)
	}
	names := map[string]bool{}
	for _, v := range all {
		name := elementName(v)
		if names[name] && problem == "" {
			problem = fmt.Sprintf("two elements of the matrix of %s would be called %s; give them values that differ in letters or digits", n.Name, name)
		}
		names[name] = true
		out = append(out, element{name, v})
	}
	switch {
	case problem == "":
		return out, nil, ""
	case m.From == "":
		s.e.fail("node %s: %s", s.full(n.Name), problem)
	}
	return nil, nil, problem
}

// combinations are all combinations of the values.
func (s *scope) combinations(n *schemas.Node) []map[string]any {
	names := slices.Sorted(maps.Keys(n.Matrix.Values))
	if len(names) == 0 {
		return nil
	}
	all := []map[string]any{{}}
	for _, name := range names {
		var next []map[string]any
		for _, one := range all {
			for _, v := range n.Matrix.Values[name] {
				more := maps.Clone(one)
				more[name] = v
				next = append(next, more)
			}
		}
		if all = next; len(all) > maxCombinations {
			s.e.fail("node %s: the matrix has more than %d combinations", s.full(n.Name), maxCombinations)
			return nil
		}
	}
	return all
}

// listed are the elements of a list in the result of another node.
func (s *scope) listed(from string) (all []map[string]any, open []string, problem string) {
	source, program, err := condition.CompileSource(from)
	if err != nil {
		return nil, nil, "matrix.from: " + err.Error()
	}
	raw, ok := s.e.Result(s.full(source))
	s.e.made.Results[s.full(source)] = resultOf(s.e.World, s.full(source))
	if !ok {
		return nil, []string{source}, ""
	}
	need := condition.Need{State: schemas.NodeSucceeded, Result: condition.Result(raw)}
	v, err := program.Value(condition.Env{Needs: map[string]condition.Need{source: need}})
	if err != nil {
		return nil, nil, "matrix.from: " + err.Error()
	}
	list, ok := v.([]any)
	if !ok {
		return nil, nil, fmt.Sprintf("matrix.from: %s is no list", from)
	}
	for _, v := range list {
		values, ok := v.(map[string]any)
		if !ok {
			values = map[string]any{"value": v}
		}
		all = append(all, values)
	}
	return all, nil, ""
}

// has reports whether values have all of some.
func has(values, some map[string]any) bool {
	for name, v := range some {
		if !reflect.DeepEqual(values[name], v) {
			return false
		}
	}
	return len(some) > 0
}

// elementName is made from the values of an element, in the order of their names. Of an object in a list that has a name or an id, it is
// that.
func elementName(values map[string]any) string {
	for _, field := range []string{"name", "id"} {
		if v, ok := values[field]; ok && len(values) > 1 {
			return plain(v)
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, plain(values[name]))
	}
	return strings.Join(parts, "_")
}

// plain is a value as part of a name.
func plain(v any) string {
	text, isText := v.(string)
	raw, _ := json.Marshal(v) // it came from JSON
	if !isText {
		text = string(raw)
	}
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.TrimRight(b.String(), "-")
	switch v.(type) {
	case []any, map[string]any:
		return short(raw)
	}
	if name == "" || len(name) > 40 {
		return short(raw)
	}
	return name
}

package expand

import (
	"encoding/json"
	"maps"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
)

// A node sees the parameters that it uses, and no others: those that its expressions read, and of a command those whose variables its
// texts name. So what a node sees is what its key has, and another value runs the nodes that use it.

// use leaves a node the parameters that it uses, and notes the values that decide about it.
func (s *scope) use(n *schemas.Node) {
	all := n.Made.Params
	n.Made.Params = s.uses(n)
	n.Made.Key = given(n.Made.Params, n.Made.Matrix)
	if n.Agent == "" && len(n.Made.Params) < len(all) {
		n.Made.Former = given(all, n.Made.Matrix)
	}
}

// given is the canonical JSON of values; nil for none.
func given(params, matrix map[string]any) []byte {
	values := map[string]any{}
	if len(matrix) > 0 {
		values["matrix"] = matrix
	}
	if len(params) > 0 {
		values["params"] = params
	}
	if len(values) == 0 {
		return nil
	}
	raw, _ := json.Marshal(values) // they came from JSON
	return raw
}

// uses are the parameters that a node uses.
func (s *scope) uses(n *schemas.Node) map[string]any {
	u := uses{s.params, map[string]any{}}
	if len(s.params) == 0 {
		return nil
	}
	names := n.Scope()
	u.template(n.Prompt, names)
	for _, text := range n.Acceptance {
		u.template(text, names)
	}
	for _, text := range n.Run {
		u.template(text, names)
	}
	for _, v := range n.Env {
		u.template(v.Text, names)
	}
	u.condition(n.When, names)
	if r := n.Repeat; r != nil {
		names.Result = true
		u.condition(r.Until, names)
	}
	if n.Agent == "" {
		u.variables(n.Script)
		for _, text := range n.Run {
			u.variables(text)
		}
		for _, v := range n.Env {
			u.variables(v.Text)
		}
	}
	return u.out
}

// uses collects parameters.
type uses struct{ all, out map[string]any }

func (u uses) note(names []string, all bool) {
	if all {
		maps.Copy(u.out, u.all)
	}
	for _, name := range names {
		if v, ok := u.all[name]; ok {
			u.out[name] = v
		}
	}
}

func (u uses) template(text string, names condition.Scope) {
	if !template.Has(text) {
		return
	}
	if t, err := template.Compile(text, names); err == nil {
		u.note(t.Params, t.AllParams)
	}
}

func (u uses) condition(text string, names condition.Scope) {
	if text == "" {
		return
	}
	if c, err := condition.CompileIn(text, names); err == nil {
		u.note(c.Params, c.AllParams)
	}
}

// variables notes the parameters whose variables a text names. One that names no parameter may be part of a name that a program
// makes: it represents all.
func (u uses) variables(text string) {
	for {
		_, rest, found := strings.Cut(text, schemas.ParamVariable)
		if !found {
			return
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return !isNamePart(r) })
		if end < 0 {
			end = len(rest)
		}
		name, known := rest[:end], false
		for param := range u.all {
			if known = schemas.VariableOf(param) == name; known {
				u.note([]string{param}, false)
				break
			}
		}
		if !known {
			u.note(nil, true)
		}
		text = rest[end:]
	}
}

func isNamePart(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

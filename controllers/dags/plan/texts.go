package plan

import (
	"iter"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/template"
)

// All yields the templates.
func (t *Texts) All() iter.Seq[*template.Template] {
	return func(yield func(*template.Template) bool) {
		for _, text := range append(slices.Concat(t.Run, t.Acceptance), t.Prompt) {
			if text != nil && !yield(text) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			if !yield(t.Env[name]) {
				return
			}
		}
	}
}

// addTexts compiles the texts of node i.
func (p *Plan) addTexts(i int32) {
	n := &p.Spec.Nodes[i]
	names := n.Scope()
	t, found := &Texts{Run: make([]*template.Template, len(n.Run)), Acceptance: make([]*template.Template, len(n.Acceptance)),
		Env: map[string]*template.Template{}}, false
	compile := func(field, text string) *template.Template {
		if !template.Has(text) {
			return nil
		}
		made, err := template.Compile(text, names)
		if err != nil {
			p.fail("node %s: %s: %v", n.Name, field, err)
		}
		found = true
		return made
	}
	for k, text := range n.Run {
		t.Run[k] = compile("run", text)
	}
	for k, text := range n.Acceptance {
		t.Acceptance[k] = compile("acceptance", text)
	}
	t.Prompt = compile("prompt", n.Prompt)
	for _, name := range slices.Sorted(maps.Keys(n.Env)) {
		if made := compile("env."+name, n.Env[name].Text); made != nil {
			t.Env[name] = made
		}
	}
	if !found {
		return
	}
	if p.Texts == nil {
		p.Texts = map[int32]*Texts{}
	}
	p.Texts[i] = t
}

// addValues gives a program the values of parameters and of a matrix.
func addValues(env schemas.Env, n *schemas.Node) {
	if n.Made == nil || n.Agent != "" {
		return
	}
	for prefix, values := range map[string]map[string]any{schemas.ParamVariable: n.Made.Params, "RECONCILE_MATRIX_": n.Made.Matrix} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			env[prefix+schemas.VariableOf(name)] = schemas.EnvValue{Text: template.Text(values[name])}
		}
	}
}

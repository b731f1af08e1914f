package dags

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/template"
)

// textEnv is what the expressions in the texts of node i see.
func (f *fold) textEnv(i int32) *template.Env {
	env, session := f.expressionEnv(i), f.b.SessionSpec()
	return &template.Env{Needs: env.Needs, Session: env.Session, DAG: env.DAG, Params: env.Params, Matrix: env.Matrix, Round: env.Round,
		Issue: workflows.Issue(session)}
}

// textsHold reports whether all expressions in the texts of node i have a value; if not, it has set the state.
func (f *fold) textsHold(i int32) bool {
	t := f.p.Texts[i]
	if t == nil {
		return true
	}
	env := f.textEnv(i)
	for text := range t.All() {
		if _, err := text.Execute(env, nil); err != nil {
			f.set(i, schemas.NodeFailed, settle.ReasonWhenFailed, err.Error())
			return false
		}
	}
	return true
}

// fillTexts puts values into the arguments and the variables of node i. textsHold has found that all expressions have some.
func (f *fold) fillTexts(i int32, c *settle.Command) {
	t := f.p.Texts[i]
	if t == nil {
		return
	}
	env := f.textEnv(i)
	c.Argv, c.Env = slices.Clone(c.Argv), slices.Clone(c.Env)
	for k, text := range t.Run {
		if text != nil {
			c.Argv[k], _ = text.Execute(env, nil)
		}
	}
	for k, kv := range c.Env {
		name, _, _ := strings.Cut(kv, "=")
		if text := t.Env[name]; text != nil {
			value, _ := text.Execute(env, nil)
			c.Env[k] = name + "=" + value
		}
	}
}

// prompt is the task of node i with its values, which are marked as data.
func (f *fold) prompt(i int32) string {
	n := &f.p.Spec.Nodes[i]
	t := f.p.Texts[i]
	if t == nil || t.Prompt == nil && !slices.ContainsFunc(t.Acceptance, func(a *template.Template) bool { return a != nil }) {
		return n.Prompt
	}
	if t.Prompt == nil {
		return n.Prompt + agentio.InsertedNote
	}
	made, err := t.Prompt.Execute(f.textEnv(i), agentio.Inserted)
	if err != nil {
		return n.Prompt // a prompt that is only looked at
	}
	return made + agentio.InsertedNote
}

// acceptance are the criteria of node i with their values, which are marked as data; its prompt says what the marks mean.
func (f *fold) acceptance(i int32) []string {
	all, t := f.p.Spec.Nodes[i].Acceptance, f.p.Texts[i]
	if t == nil {
		return all
	}
	out := slices.Clone(all)
	for k, text := range t.Acceptance {
		if text == nil {
			continue
		}
		if made, err := text.Execute(f.textEnv(i), agentio.Inserted); err == nil { // else it is only looked at
			out[k] = made
		}
	}
	return out
}

// filled are the texts of node i with their values, for the digest of what a gate shows. One without a value says why.
func (f *fold) filled(i int32) (out []string) {
	t := f.p.Texts[i]
	if t == nil {
		return nil
	}
	env := f.textEnv(i)
	for text := range t.All() {
		made, err := text.Execute(env, nil)
		if err != nil {
			made = err.Error()
		}
		out = append(out, made)
	}
	return out
}

// task is the prompt, script or command of node i as it will run. An argument without a value is left as it is written.
func (f *fold) task(i int32) string {
	n, t := &f.p.Spec.Nodes[i], f.p.Texts[i]
	if n.Prompt != "" {
		return f.prompt(i)
	}
	argv := slices.Clone(n.Run)
	if t != nil {
		env := f.textEnv(i)
		for k, text := range t.Run {
			if text == nil {
				continue
			}
			if made, err := text.Execute(env, nil); err == nil {
				argv[k] = made
			}
		}
	}
	return cmp.Or(n.Script, strings.Join(argv, " "))
}

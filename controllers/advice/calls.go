package advice

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
	"reconcile.dev/reconcile/state"
)

// unused are the fields of a called DAG, by path below spec, that have no effect in a call: those of the calling DAG count.
func unused(s *schemas.DAGSpec) (fields []string) {
	p := s.Policy
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"policy.continueOnFailure", p.ContinueOnFailure != nil && *p.ContinueOnFailure},
		{"policy.failFast", p.FailFast != nil && !*p.FailFast}, {"policy.onChange", p.OnChange != ""},
		{"policy.rerunOnAgentChange", p.RerunOnAgentChange}, {"schedule", len(s.Schedule) > 0}, {"concurrency", s.Concurrency != nil},
		{"onFailure", len(s.OnFailure) > 0}, {"onSuccess", len(s.OnSuccess) > 0}, {"issue", s.Issue > 0},
	} {
		if f.set {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// adviseTemplate warns of fields of a DAG that only others call, and that a call leaves out.
func adviseTemplate(e *state.Entry, spec *schemas.DAGSpec) (all []Advice) {
	if !spec.Template {
		return nil
	}
	for _, name := range unused(spec) {
		field := []any{"spec"}
		for part := range strings.SplitSeq(name, ".") {
			field = append(field, part)
		}
		all = append(all, Advice{Code: "no-effect", Ref: e.Ref, File: e.Object.Path, Field: field,
			Message: name + " has no effect in a DAG that only others call", Suggestion: "remove it, or give it to the DAGs that call this one"})
	}
	return all
}

// adviseText warns of expressions in a DAG without anything that expands: they are text there.
func adviseText(e *state.Entry, spec *schemas.DAGSpec) (all []Advice) {
	if spec.Expands() || spec.Template || spec.Workflow != nil {
		return nil
	}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		isExpression := func(text string) bool {
			_, err := template.Compile(text, condition.Scope{Needs: n.Needs, Params: paramsIn(text)})
			return template.Has(text) && err == nil
		}
		field := []any{"spec", "nodes", i, "prompt"}
		if k := slices.IndexFunc(n.Run, isExpression); k >= 0 {
			field = []any{"spec", "nodes", i, "run", k}
		} else if !isExpression(n.Prompt) {
			continue
		}
		all = append(all, Advice{Code: "no-effect", Ref: e.Ref, File: e.Object.Path, Field: field,
			Message:    "{{ }} is text here: the DAG has no params, matrix, call, finally or workflow",
			Suggestion: "add params to the DAG, or read the file that RECONCILE_NEEDS names"})
	}
	return all
}

// paramsIn lists the names that a text has after "params.".
func paramsIn(text string) (names []string) {
	for _, after := range strings.Split(text, "params.")[1:] {
		end := strings.IndexFunc(after, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(after)
		}
		names = append(names, after[:end])
	}
	return names
}

// adviseCalls warns of calls of DAGs with fields that a call leaves out.
func adviseCalls(t *state.Tree, e *state.Entry) (all []Advice) {
	for i, n := range schemas.SpecAs[*schemas.DAGSpec](e.Object.Declared()).Nodes {
		callee := t.Entry(schemas.DAGKind.Ref(n.DAG))
		if n.DAG == "" || callee == nil || callee.Object == nil {
			continue
		}
		called := schemas.SpecAs[*schemas.DAGSpec](callee.Object.Declared())
		if called == nil || called.Template {
			continue // the template has the warning
		}
		if fields := unused(called); len(fields) > 0 {
			all = append(all, Advice{Code: "no-effect", Ref: e.Ref, File: e.Object.Path, Field: []any{"spec", "nodes", i, "dag"},
				Message:    fmt.Sprintf("in a call, %s of %s (%s) has no effect", strings.Join(fields, ", "), callee.Ref, callee.Object.Path),
				Suggestion: "give it to this DAG if it is to count here"})
		}
	}
	return all
}

// adviseExclude warns of entries of exclude that leave out nothing of the values of a matrix.
func adviseExclude(e *state.Entry) (all []Advice) {
	written(e, func(n *schemas.Node, at []any) {
		if n.Matrix == nil || n.Matrix.From != "" {
			return
		}
		for k, entry := range n.Matrix.Exclude {
			for _, name := range slices.Sorted(maps.Keys(entry)) {
				has := func(v any) bool { return reflect.DeepEqual(v, entry[name]) }
				if slices.ContainsFunc(n.Matrix.Values[name], has) {
					continue
				}
				all = append(all, Advice{Code: "no-effect", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "matrix", "exclude", k),
					Message:    fmt.Sprintf("it leaves out nothing: no value of %s is %#v", name, entry[name]),
					Suggestion: "write it as values has it; 1.2 is a number, and \"1.2\" a text"})
				break
			}
		}
	})
	return all
}

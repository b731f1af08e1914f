package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Details are lines for the description of a workflow, its steps and runs, and of a session, the status of its issue.
func Details(t *state.Tree, e *state.Entry) []settle.Column {
	switch spec := schemas.SpecAs[*schemas.WorkflowSpec](e.Object); {
	case spec != nil:
		return describe(t, e, spec)
	case e.Kind == schemas.SessionKind.Name:
		return sessionDetails(t, e)
	}
	return nil
}

func describe(t *state.Tree, e *state.Entry, spec *schemas.WorkflowSpec) []settle.Column {
	var out []settle.Column
	for i := range spec.Steps {
		out = append(out, line("Step "+spec.Steps[i].ID, stepText(t, &spec.Steps[i])))
	}
	for _, run := range runs(t, e.Name) {
		b := run.Brief()
		text := fmt.Sprintf("%s, %s nodes", cmp.Or(b.Phase, schemas.DAGPending), b.Progress.String())
		if status := state.StatusOf[schemas.DAGStatus](run).IssueStatus; status != "" {
			text += ", issue " + status
		}
		out = append(out, line("Run "+run.Name, text))
	}
	return out
}

// stepText says which agent does a step, after what, whom it may ask, and how it is repeated.
func stepText(t *state.Tree, st *schemas.Step) string {
	text := st.Agent
	if len(st.Needs) > 0 {
		text += ", after " + strings.Join(st.Needs, ", ")
	}
	agent := state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref(st.Agent)))
	node := schemas.Clarify{Agents: st.CanClarify}
	if may := clarify.NewScope(st.Agent, agent, &node).Allowed(); len(may) > 0 {
		text += ", may ask " + strings.Join(may, ", ")
	}
	if st.Iterate {
		text += ", repeated from " + cmp.Or(st.IterateFrom, st.ID)
	}
	if st.Optional {
		text += ", optional"
	}
	return text
}

// sessionDetails is the status of the issue that the runs in a session set.
func sessionDetails(t *state.Tree, e *state.Entry) []settle.Column {
	var out []settle.Column
	for _, ref := range t.ReferrersOf(e.Ref, schemas.DAGKind.Name) {
		if dag := t.Entry(ref); dag != nil && dag.Object != nil && runIn(dag) != nil {
			if status := state.StatusOf[schemas.DAGStatus](dag).IssueStatus; status != "" {
				out = append(out, line("Issue status", status))
			}
		}
	}
	return out
}

func line(head, text string) settle.Column {
	return settle.Column{Head: head, Text: func(*state.Entry) string { return text }}
}

package clarifications

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ScopeOf returns whom an agent may ask. Workflows are ordered by name.
func (w *Requests) ScopeOf(from string) clarify.Scope {
	if s, ok := w.scopes[from]; ok {
		return s
	}
	var agent *schemas.AgentSpec
	if e := w.Tree.Entry(schemas.AgentKind.Ref(from)); e != nil {
		agent = schemas.SpecAs[*schemas.AgentSpec](e.Object)
	}
	s := clarify.NewScope(from, agent, agents.WorkflowSteps(w.Tree))
	if w.scopes == nil {
		w.scopes = map[string]clarify.Scope{}
	}
	w.scopes[from] = s
	return s
}

// ScopeOf is whom an agent of the tree may ask, and under which limits.
func ScopeOf(t *state.Tree, from string) clarify.Scope {
	return (&Requests{Tree: t}).ScopeOf(from)
}

// refusal says why a request gets no number, or waits with the one that it has: its agent may not ask that, or the file
// of an agent is broken.
func (w *Requests) refusal(e *state.Entry, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) (settle.Judgement, bool) {
	if st.ID == "" {
		if err := w.ScopeOf(spec.From).Check(spec); err != nil {
			j := settle.Judgement{Class: settle.ClassFailed, Reason: settle.ReasonScopeViolation, Message: err.Error()}
			if spec.Imported != "" {
				j.Class = settle.ClassWaiting // nobody here asked it
			}
			return j, true
		}
	}
	for _, name := range []string{spec.From, spec.To} {
		a := w.Tree.Entry(schemas.AgentKind.Ref(name))
		if schemas.ClarificationOpen(st.Phase) && a != nil && a.Broken() {
			return settle.Judgement{Phase: st.Phase, Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right", a.Ref)}, true
		}
	}
	return settle.Judgement{}, false
}

// Precedence is larger for the more downstream agent.
func (w *Requests) Precedence(agent string) int {
	if e := w.Tree.Entry(schemas.AgentKind.Ref(agent)); e != nil {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil && spec.Precedence != nil {
			return *spec.Precedence
		}
	}
	return schemas.DefaultPrecedence(agent)
}

package admission

import (
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// performers are the kinds whose objects have claims.
var performers = []string{schemas.DAGKind.Name, schemas.SessionKind.Name, schemas.ClarificationRequestKind.Name}

// GroupsOf are the groups that a claim of an object of a session counts against, without their limits: for an effect that no decision
// describes.
func GroupsOf(t *state.Tree, e *state.Entry, session string, c *state.Claim) []settle.Group {
	var out []settle.Group
	add := func(names ...string) {
		for _, name := range names {
			out = append(out, settle.Group{Name: name})
		}
	}
	switch {
	case c.Lands != "":
		if s := state.SpecOf[*schemas.SessionSpec](t.Entry(schemas.SessionKind.Ref(session))); s != nil {
			add(settle.LandGroup + s.Branch)
		}
		return out
	case c.Node == schemas.OnFailure || c.Node == schemas.OnSuccess:
		add(settle.NoticesGroup)
		return out
	}
	add(settle.TasksGroup)
	if session != "" {
		add(settle.SessionGroup + session)
	}
	if e.Kind == schemas.DAGKind.Name {
		add(settle.DAGGroup + e.Name)
	}
	if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil {
		for _, call := range spec.CallsOf(c.Node) {
			add(settle.DAGGroup + e.Name + "/" + call.Node)
		}
	}
	if c.Agent == "" {
		return out
	}
	add(settle.AgentGroup + c.Agent)
	if a := state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref(c.Agent))); a != nil {
		add(settle.RoleGroup + a.Role)
	}
	if agents.IsEngineer(t, c.Agent) && session != "" {
		add(settle.EngineersGroup, settle.SessionGroup+session+"/"+settle.EngineersGroup)
	}
	return out
}

// ownerSession is the session of an object with claims, also of a DAG whose spec is gone; "" for none.
func ownerSession(e *state.Entry) string {
	if e.Kind == schemas.SessionKind.Name {
		return e.Name
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && e.Object == nil {
		return st.Session
	}
	return sessionOf(e)
}

// sessionOf is the session of a DAG; "" for none, and without a usable spec. It decodes nothing.
func sessionOf(e *state.Entry) string {
	if e != nil && e.Object != nil {
		for _, r := range e.Object.Refs {
			if r.To.Kind == schemas.SessionKind.Name {
				return r.To.Name
			}
		}
	}
	return ""
}

package agents

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Bounds are what holds for the specs that an agent writes as a node of a DAG. The node may be none of the DAG, and the DAG may be nil: then it
// is not known which task it is.
func Bounds(t *state.Tree, dag *state.Entry, node, agent string) *schemas.Bounds {
	b := &schemas.Bounds{Agent: agent}
	for _, e := range t.Active(schemas.AgentKind.Name) {
		switch spec := state.SpecOf[*schemas.AgentSpec](e); {
		case spec == nil:
		case spec.Runner.Human != nil:
			b.People = append(b.People, e.Name)
		case spec.Role == schemas.RoleEngineer:
			b.Engineers = append(b.Engineers, e.Name)
		}
	}
	spec := state.SpecOf[*schemas.DAGSpec](dag)
	if spec == nil {
		return b
	}
	b.Session = spec.Session
	session := state.SpecOf[*schemas.SessionSpec](t.Entry(schemas.SessionKind.Ref(spec.Session)))
	if session != nil {
		b.Priority = session.Priority
	}
	n := spec.Node(node)
	switch {
	case spec.Budget != nil:
		b.Beside = "the budget of " + dag.Ref.String()
	case n != nil && session != nil && (n.Land != nil && session.Land == nil || n.Pipeline != nil && session.Pipeline == nil):
		b.Beside = "the checks of node " + node
	}
	return b
}

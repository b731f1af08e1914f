package dags

import "reconcile.dev/reconcile/schemas"

// pipelineOf is the pipeline of node i; nil for none.
func (f *fold) pipelineOf(i int32) *schemas.Pipeline {
	n, session := &f.p.Spec.Nodes[i], f.b.SessionSpec()
	switch {
	case n.Agent == "" || f.b.Human[i]:
		return nil
	case n.Pipeline != nil || session.Pipeline == nil:
		return n.Pipeline
	}
	if a := f.b.Agent(f.p, n.Agent); a != nil && a.Role == schemas.RoleEngineer {
		return session.Pipeline
	}
	return nil
}

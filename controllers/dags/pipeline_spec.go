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

// stepsOf are the steps of a pipeline, in their order.
func stepsOf(p *schemas.Pipeline) []string {
	steps := []string{schemas.StepInspect}
	if p.Inspector != "" {
		steps = append(steps, schemas.StepReview)
	}
	if steps = append(steps, schemas.StepTest); p.Tester != "" {
		steps = append(steps, schemas.StepWrite)
	}
	return steps
}

// stepAgent names the agent of a step, and is also the role of such an agent.
func stepAgent(step string) string {
	if step == schemas.StepTest || step == schemas.StepWrite {
		return schemas.RoleTester
	}
	return schemas.RoleInspector
}

// verifier is the agent that does a step of a pipeline; "" where tools do.
func verifier(p *schemas.Pipeline, step string) string {
	switch step {
	case schemas.StepReview:
		return p.Inspector
	case schemas.StepWrite:
		return p.Tester
	}
	return ""
}

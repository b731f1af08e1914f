package dags

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
)

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

// allowsNone reports whether a pipeline accepts that the project has nothing with which to do a step.
func allowsNone(p *schemas.Pipeline, step string) bool { return slices.Contains(p.AllowUnknown, step) }

// stepArgs are the arguments with which reconcile does a step and prints the evidence, without what they are about.
func stepArgs(p *schemas.Pipeline, step string) []string {
	args := []string{step, "--output", "evidence", "--exit-zero"}
	if step == schemas.StepInspect && p.FailOn != "" {
		args = append(args, "--fail-on", p.FailOn)
	}
	for _, name := range p.AllowUnknown {
		if name != schemas.StepInspect && name != schemas.StepTest {
			args = append(args, "--allow-unknown", name)
		}
	}
	if p.Timeout != nil {
		args = append(args, "--timeout", p.Timeout.String())
	}
	return args
}

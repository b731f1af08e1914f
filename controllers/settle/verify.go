package settle

import "reconcile.dev/reconcile/schemas"

// VerifyArgs are the arguments with which reconcile does a step of a pipeline and prints the evidence, without what they are about.
func VerifyArgs(p *schemas.Pipeline, step string) []string {
	args := []string{step, "--output", "evidence", "--exit-zero"}
	if step == schemas.StepInspect && p.FailOn != "" {
		args = append(args, "--fail-on", p.FailOn)
	}
	for _, name := range p.AllowUnknown {
		if name != schemas.StepTest && (name != schemas.StepInspect || step == name) {
			args = append(args, "--allow-unknown", name)
		}
	}
	if p.Timeout != nil {
		args = append(args, "--timeout", p.Timeout.String())
	}
	return args
}

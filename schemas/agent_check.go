package schemas

import "time"

// AgentCheck says how an agent is checked before its first use: whether its program is there, answers and is logged in, as reconcile
// doctor finds out.
type AgentCheck struct {
	// Argv is a program that is run in addition, at the root of the tree: the agent is healthy if it ends with exit code 0.
	Argv []string `json:"argv,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// Every is how long a result holds; then the agent is checked again before it is used. Default 1m.
	Every *Duration `json:"every,omitempty" jsonschema:"default=1m"`
}

// defaultCheckEvery is AgentCheck.Every where a spec does not say otherwise.
const defaultCheckEvery = Duration(time.Minute)

// IsChecked reports whether the agent is checked before it is used: its spec says how, or who does its work otherwise.
func (s *AgentSpec) IsChecked() bool { return s.Health != nil || len(s.Fallback) > 0 }

// CheckEvery is how long the result of a check holds.
func (s *AgentSpec) CheckEvery() time.Duration {
	if s.Health == nil || s.Health.Every == nil {
		return defaultCheckEvery.Std()
	}
	return s.Health.Every.Std()
}

func (s *AgentSpec) checkHealth(r *Report) {
	if s.Health != nil {
		checkArgv(r.At("check", "argv"), s.Health.Argv)
		checkTimeout(r.At("check", "every"), s.Health.Every)
	}
	checkRefs(r, s.Fallback, "fallback")
	if s.Runner.Human != nil && s.IsChecked() {
		r.At("runner", "human").Errorf("conflict", "a person is not checked, and nobody does a person's work instead").
			suggest("remove check and fallback")
	}
}

// Instead says that an agent does the work of another one.
type Instead struct {
	Of  string `json:"of"`  // the agent that the node names
	Why string `json:"why"` // why that one does not work
}

// By says who works in place of whom, and why.
func (s *Instead) By(agent string) string {
	return agent + " instead of " + s.Of + ", " + s.Why
}

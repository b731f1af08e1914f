package schemas

import (
	"cmp"
	"slices"
)

// Pipeline has an inspector and a tester verify the change of an agent before its commit lands: the linters, formatters and type
// checkers that the project uses, on the files that changed, and then the tests that are related to them. What they find goes back to
// the agent, until both pass on the very commit. A check that did not run is not passed.
type Pipeline struct {
	// MaxLoops is how often the inspector, and how often the tester, sends a change back before a person has to decide. Default 3.
	MaxLoops int `json:"maxLoops,omitempty" jsonschema:"minimum=1,maximum=20,default=3"`
	// FailOn is the severity from which on a finding sends a change back. Default low.
	FailOn string `json:"failOn,omitempty" jsonschema:"enum=critical,enum=high,enum=medium,enum=low,enum=info,default=low"`
	// AllowUnknown names tools whose checks may be unknown: not installed, say, or without a test that ran.
	AllowUnknown []string `json:"allowUnknown,omitempty" jsonschema:"maxItems=100"`
	// Timeout ends each of the checks. Default 10m.
	Timeout *Duration `json:"timeout,omitempty"`
}

// The steps that verify a change, in their order.
const (
	StepInspect = "inspect"
	StepTest    = "test"
)

// Loops is MaxLoops with its default.
func (p *Pipeline) Loops() int { return cmp.Or(p.MaxLoops, 3) }

// AllowsNone reports whether the pipeline accepts that the project has nothing with which to do a step.
func (p *Pipeline) AllowsNone(step string) bool { return slices.Contains(p.AllowUnknown, step) }

func (p *Pipeline) check(at Spot) {
	if p == nil {
		return
	}
	if p.Timeout != nil {
		checkTimeout(at.At("timeout"), p.Timeout)
	}
	for i, name := range p.AllowUnknown {
		if name == "" {
			at.At("allowUnknown", i).Errorf("missing", "names no tool").Suggest("write a name that reconcile tools shows")
		}
	}
}

// States of a pipeline.
const (
	PipelineRunning    = "Running"    // the agent works
	PipelineInspecting = "Inspecting" // the inspector looks at its commit
	PipelineTesting    = "Testing"    // the tester does
	PipelineWaiting    = "Waiting"    // a person has to decide
	PipelineCompleted  = "Completed"  // both passed, or people decided so
	PipelineFailed     = "Failed"     // the node failed, or was cancelled
)

// PipelineStatus says how far the verification of a node's change is.
type PipelineStatus struct {
	State string `json:"state"` // one of the Pipeline constants
	// InspectorLoops and TesterLoops count how often they sent a change back.
	InspectorLoops int `json:"inspectorLoops,omitempty"`
	TesterLoops    int `json:"testerLoops,omitempty"`
	// Inspected and Tested are the latest verdicts: the outcome, and what was looked at and found.
	Inspected string `json:"inspected,omitempty"`
	Tested    string `json:"tested,omitempty"`
	// Commit is the commit that the verdicts are about.
	Commit string `json:"commit,omitempty"`
}

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
	// AllowUnknown names tools whose checks may be unknown: not installed, say, or without a test that ran; and inspect and test where the project may
	// have none for that step, or for some of the files.
	AllowUnknown []string `json:"allowUnknown,omitempty" jsonschema:"maxItems=100"`
	// Timeout ends each of the checks. Default 10m.
	Timeout *Duration `json:"timeout,omitempty"`
	// Inspector is an agent with the role inspector. It reviews each change that the tools of the inspector let through; what it finds
	// counts as what they find. Default: none does.
	Inspector string `json:"inspector,omitempty" jsonschema:"maxLength=63"`
	// Tester is an agent with the role tester. It writes tests of each change that the inspector and the tests of the project let through. They
	// are inspected and run, too, and land with the change. Default: none does.
	Tester string `json:"tester,omitempty" jsonschema:"maxLength=63"`
}

// The steps that verify a change, in their order.
const (
	StepInspect = "inspect"
	StepReview  = "review" // by an agent
	StepTest    = "test"
	StepWrite   = "write-tests" // by an agent; its tests are inspected and tested then
)

// StepLand is the step that makes a change part of the branch.
const StepLand = "land"

// Loops is MaxLoops with its default.
func (p *Pipeline) Loops() int { return cmp.Or(p.MaxLoops, 3) }

// AllowsNone reports whether the pipeline accepts that the project has nothing with which to do a step.
func (p *Pipeline) AllowsNone(step string) bool { return slices.Contains(p.AllowUnknown, step) }

// check reports problems of a pipeline; engineer is the agent whose change it verifies, "" if that may be any.
func (p *Pipeline) check(at Spot, engineer string) {
	if p == nil {
		return
	}
	if p.Timeout != nil {
		checkTimeout(at.At("timeout"), p.Timeout)
	}
	for i, name := range p.AllowUnknown {
		if name == "" {
			at.At("allowUnknown", i).Errorf("missing", "names no tool").suggest("write a name that reconcile tools shows")
		}
	}
	for _, a := range p.Agents() {
		if checkRef(at.At(a.Field), a.Name); a.Name == engineer {
			at.At(a.Field).Errorf("conflict", "%s would judge its own change", a.Name).suggest("name another agent with the role %s", a.Field)
		}
	}
}

// PipelineAgent is an agent of a pipeline: the field that names it, which is also its role.
type PipelineAgent struct{ Field, Name string }

// Agents are the agents of a pipeline, in the order of their steps; none for a pipeline of tools, and for none.
func (p *Pipeline) Agents() (all []PipelineAgent) {
	if p != nil && p.Inspector != "" {
		all = append(all, PipelineAgent{RoleInspector, p.Inspector})
	}
	if p != nil && p.Tester != "" {
		all = append(all, PipelineAgent{RoleTester, p.Tester})
	}
	return all
}

// references adds hard references to the agents of a pipeline in a field.
func (p *Pipeline) references(out []Reference, field ...any) []Reference {
	for _, a := range p.Agents() {
		out = append(out, Reference{Field: append(slices.Clip(field), a.Field), To: AgentKind.Ref(a.Name), Hard: true})
	}
	return out
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
	// Reviewed is the latest verdict of the agent that reviews.
	Reviewed string `json:"reviewed,omitempty"`
	// Written is what an agent wrote of tests of the change, with their files, which are its own.
	Written string `json:"written,omitempty"`
	// Commit is the commit that the verdicts are about.
	Commit string `json:"commit,omitempty"`
	// Digest is that of the change, for ignore-inspector and ignore-tester; empty where there is nothing to ignore.
	Digest string `json:"digest,omitempty"`
	// Undecided are the questions about tools that the change waits for.
	Undecided []ToolQuestion `json:"undecided,omitempty"`
}

// ToolQuestion is a question that a verification leaves open: nothing in the project says which tool of a category checks a language.
type ToolQuestion struct {
	Language string `json:"language"`
	Category string `json:"category"`
	Files    int    `json:"files,omitempty"` // of the language in the project
	// Installed are the tools that could do it at once.
	Installed []string `json:"installed,omitempty"`
	// Chosen is the tool that was chosen by then, and did not decide it; "" for none.
	Chosen string `json:"chosen,omitempty"`
}

// UndecidedOf are the questions about tools that changes of a DAG wait for, by its brief; the status is read only if there may be some.
func UndecidedOf(b *Brief, status func() Status) (all []ToolQuestion) {
	if b == nil || b.Phase != DAGRunning && b.Phase != DAGPaused {
		return nil
	}
	if st, ok := status().(*DAGStatus); ok {
		for _, n := range st.Nodes.All() {
			if n.Pipeline != nil {
				all = append(all, n.Pipeline.Undecided...)
			}
		}
	}
	return all
}

// Key is the key of the preference that answers the question.
func (q ToolQuestion) Key() string { return q.Language + "/" + q.Category }

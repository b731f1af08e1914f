package schemas

import "slices"

// WorkflowRun says which run of a workflow a DAG is.
type WorkflowRun struct {
	// Name is the name of the workflow.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=63"`
	// Start is the name of the action that started it.
	Start string `json:"start,omitempty" jsonschema:"maxLength=63"`
}

func (w *WorkflowRun) check(at Spot) {
	if w == nil {
		return
	}
	checkRef(at.At("name"), w.Name)
	if w.Start != "" {
		checkRef(at.At("start"), w.Start)
	}
}

// Clarify is the scope of the questions that the runs of a node ask.
type Clarify struct {
	// Agents are those that the node's agent may ask, in addition to its canClarify.
	Agents []string `json:"agents,omitempty"`
	// MaxRounds bounds the rounds of one question. Default 5, for questions that do not block 6, which are also the most that there can be.
	MaxRounds int `json:"maxRounds,omitempty" jsonschema:"minimum=1,maximum=100"`
	// SLAMinutes is the time for an answer; 0 means at once. Default: the settings', 30.
	SLAMinutes *int `json:"slaMinutes,omitempty" jsonschema:"minimum=0,maximum=525600"`
	// BlockingAllowed says whether a question may block the node. Default true.
	BlockingAllowed *bool `json:"blockingAllowed,omitempty"`
}

// IssueStatus is the status of an issue while a node works, and when it has succeeded.
type IssueStatus struct {
	// OnStart is set when the node starts.
	OnStart string `json:"onStart,omitempty" jsonschema:"maxLength=50"`
	// OnComplete is set when the node has succeeded.
	OnComplete string `json:"onComplete,omitempty" jsonschema:"maxLength=50"`
}

// checkStep reports problems of the fields that the steps of workflows use.
func (n *Node) checkStep(at Spot) {
	if s := n.IssueStatus; s != nil {
		checkLine(at.At("issueStatus", "onStart"), s.OnStart)
		checkLine(at.At("issueStatus", "onComplete"), s.OnComplete)
	}
	c := n.Clarify
	if c == nil {
		return
	}
	if n.Agent == "" {
		at.At("clarify").Errorf("conflict", "only an agent asks questions").suggest("name the agent, or remove clarify")
		return
	}
	checkAskable(at.At("clarify", "agents"), n.Agent, c.Agents)
	checkRounds(at.At("clarify", "maxRounds"), c.MaxRounds)
}

// checkAskable reports bad names among the agents that an agent may ask, and itself.
func checkAskable(at Spot, agent string, whom []string) {
	checkRefs(at.report, whom, at.field...)
	if i := slices.Index(whom, agent); i >= 0 {
		at.At(i).Errorf("self-reference", "agent %q cannot ask itself", agent)
	}
}

func checkRounds(at Spot, rounds int) {
	if rounds > ClarifyRoundsOpen {
		at.warnf("no-effect", "a question ends after %d rounds, and after %d if it blocks: more has no effect", ClarifyRoundsOpen, ClarifyRoundsBlocking)
	}
}

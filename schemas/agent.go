package schemas

// AgentKind is the kind Agent.
var AgentKind = Kind{
	Name: "Agent", Plural: "agents", Aliases: []string{"a"},
	Short:     "Someone who works and answers questions: a program that is run, or a person.",
	New:       func() Spec { return new(AgentSpec) },
	NewStatus: func() Status { return new(AgentStatus) },
}

// DefaultContextWindow is the window of an agent that names none, in tokens.
const DefaultContextWindow = 200000

// AgentSpec declares an agent.
type AgentSpec struct {
	// Role is what the agent does: guide, architect, engineer, … or any other name. Default: the object's name.
	Role string `json:"role,omitempty" jsonschema:"maxLength=63,example=engineer"`
	// Precedence orders agents from upstream to downstream: smaller is more upstream. Known roles have one.
	Precedence *int `json:"precedence,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// Description says what the agent is for.
	Description string `json:"description,omitempty" jsonschema:"maxLength=10000"`
	// CanClarify names the agents that this one may ask.
	CanClarify []string `json:"canClarify,omitempty"`
	// Model is handed to the runner; reconcile does not interpret it.
	Model string `json:"model,omitempty" jsonschema:"maxLength=200"`
	// ContextWindow is the size of the model's window in tokens. Default 200000.
	ContextWindow int `json:"contextWindow,omitempty" jsonschema:"minimum=1,maximum=100000000,default=200000"`
	// Concurrency bounds how many runs of this agent there are at once. Default 1.
	Concurrency int `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=10000,default=1"`
	// Runner says how the agent is run: exactly one of its fields.
	Runner Runner `json:"runner"`
}

// Runner says how an agent is run. Exactly one field is set.
type Runner struct {
	Command *CommandRunner `json:"command,omitempty"`
	Human   *HumanRunner   `json:"human,omitempty"`
}

// CommandRunner runs a program once for each task.
type CommandRunner struct {
	// Argv is the program and its arguments; no shell reads them.
	Argv []string `json:"argv" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the clean environment (PATH, HOME, LANG and RECONCILE_*).
	Env map[string]string `json:"env,omitempty"`
	// Stdin is what the program reads: prompt (text), json (the task as JSON) or none. Default prompt.
	Stdin string `json:"stdin,omitempty" jsonschema:"enum=prompt,enum=json,enum=none,default=prompt"`
	// Output says how stdout is read: text, json, or the name of a profile. Default text.
	Output string `json:"output,omitempty" jsonschema:"maxLength=63,default=text"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty"`
}

// HumanRunner means that a person answers.
type HumanRunner struct {
	// Contact says who that is, for messages: a name, a handle, a team.
	Contact string `json:"contact,omitempty" jsonschema:"maxLength=200"`
}

// States of an agent (agentx-spec 4.3).
const (
	AgentIdle    = "idle"
	AgentWorking = "working"
	AgentClarify = "clarifying"
	AgentBlocked = "blocked-clarification"
	AgentDone    = "done"
	AgentStuck   = "stuck"
)

// AgentStatus is the observed state of an agent. The fields beside Common are those of agentx-spec 4.3, and
// state/agent-status.json is their projection.
type AgentStatus struct {
	Common
	AgentActivity
	// Running lists the effect keys of the runs of this agent that are under way, sorted.
	Running []string `json:"running,omitempty"`
}

// AgentActivity is one value of state/agent-status.json (agentx-spec 4.3).
type AgentActivity struct {
	Status          string  `json:"status"`
	Issue           *int    `json:"issue"`
	LastActivity    Time    `json:"lastActivity"`
	ClarificationID *string `json:"clarificationId"`
	WaitingOn       *string `json:"waitingOn"`
	RespondingTo    *string `json:"respondingTo"`
}

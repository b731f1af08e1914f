package schemas

import (
	"strings"
	"time"
)

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
	// Instructions are the rules of the agent: the beginning of each of its prompts.
	Instructions Instructions `json:"instructions,omitzero"`
	// PromptTokens bounds a prompt, without memory and files, in tokens. Default: a quarter of contextWindow.
	PromptTokens int `json:"promptTokens,omitempty" jsonschema:"minimum=1000,maximum=100000000"`
	// CanClarify names the agents that this one may ask.
	CanClarify []string `json:"canClarify,omitempty"`
	// Model is handed to the runner; reconcile does not interpret it.
	Model string `json:"model,omitempty" jsonschema:"maxLength=200"`
	// ContextWindow is the size of the model's window in tokens. Default 200000.
	ContextWindow int `json:"contextWindow,omitempty" jsonschema:"minimum=1,maximum=100000000,default=200000"`
	// Memory says at which use of the context a checkpoint is written, and the session ends. Default: by role.
	Memory *AgentMemory `json:"memory,omitempty"`
	// Concurrency bounds how many runs of this agent there are at once. Default 1.
	Concurrency int `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=10000,default=1"`
	// Workspace is where the agent's nodes work: inPlace is the tree itself, clone a folder of their own with a clone of the
	// commit on record, worktree one with a linked work tree of the repository. Default: inPlace for a
	// command without a profile and for a model that writes no files, clone for all others.
	Workspace string `json:"workspace,omitempty" jsonschema:"enum=inPlace,enum=clone,enum=worktree"`
	// Budget bounds what all runs of the agent together use, over the whole tree. Default: no bound.
	Budget *Budget `json:"budget,omitempty"`
	// Sandbox limits what the agent's programs may do on the machine.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Runner says how the agent is run: exactly one of its fields.
	Runner Runner `json:"runner"`
}

// Places where the nodes of an agent work.
const (
	WorkspaceInPlace  = "inPlace"
	WorkspaceClone    = "clone"
	WorkspaceWorktree = "worktree"
)

// WorkspaceKind is where the agent's nodes work, one of the Workspace constants. declared reports whether the spec says so.
// Known agents get a clone, plain commands work in the tree.
func (s *AgentSpec) WorkspaceKind() (kind string, declared bool) {
	c, h := s.Runner.Command, s.Runner.HTTP
	switch {
	case s.Workspace != "":
		return s.Workspace, true
	case h != nil && h.Tools == ToolsWrite, s.Runner.Profile != "", s.Runner.ACP != nil, c != nil && c.Profile != "":
		return WorkspaceClone, false
	}
	return WorkspaceInPlace, false
}

// Instructions are rules for an agent, as text or in a file.
type Instructions struct {
	// Text is the instructions themselves.
	Text string `json:"text,omitempty" jsonschema:"maxLength=100000"`
	// File is the path of a file below the root with the instructions; it is read at each start, up to 64 KiB.
	File string `json:"file,omitempty" jsonschema:"maxLength=1000"`
}

// Runner says how an agent is run. Exactly one field is set, besides keyFrom.
type Runner struct {
	// Profile names the profile of a known agent, in place of the other fields: claude, codex, gemini, copilot, opencode, qwen,
	// or one of the settings.
	Profile string `json:"profile,omitempty" jsonschema:"maxLength=63,example=claude"`
	// Command runs a program once for each task.
	Command *CommandRunner `json:"command,omitempty"`
	// ACP runs a program that speaks the Agent Client Protocol over its standard streams.
	ACP *ACPRunner `json:"acp,omitempty"`
	// HTTP asks a model at an HTTP endpoint, without a program.
	HTTP *HTTPRunner `json:"http,omitempty"`
	// Human means that a person answers; {} is enough.
	Human *HumanRunner `json:"human,omitempty"`
	// KeyFrom says where the key of the model's service is, for a profile, or a command with one. The program then gets the address
	// of reconcile's metering proxy and a token of its run in place of the key. Default: the program uses its own login.
	KeyFrom *KeySource `json:"keyFrom,omitempty"`
}

// CommandRunner runs a program once for each task.
type CommandRunner struct {
	// Profile says how the output is read, and the program where argv does not: claude, codex, gemini, copilot, opencode, qwen, or
	// one of the settings. Without one, output says how.
	Profile string `json:"profile,omitempty" jsonschema:"maxLength=63,example=claude"`
	// Argv is the program and its arguments; no shell reads them. Default: those of the profile.
	Argv []string `json:"argv,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the clean environment (PATH, HOME, LANG and RECONCILE_*).
	Env map[string]string `json:"env,omitempty"`
	// Stdin is what the program reads: prompt (text), json (the task as JSON) or none. Default prompt.
	Stdin string `json:"stdin,omitempty" jsonschema:"enum=prompt,enum=json,enum=none,default=prompt"`
	// Output says how stdout is read: text (it is the result) or json (its value is). Default text.
	Output string `json:"output,omitempty" jsonschema:"enum=text,enum=json,default=text"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a run that has printed nothing for that long; with a profile, while no tool runs. Default: that of the profile;
	// without one, no limit.
	Silence *Duration `json:"silence,omitempty"`
}

// ACPRunner runs a program that speaks the Agent Client Protocol, version 1, over its standard streams: one process for each
// task.
type ACPRunner struct {
	// Argv is the program and its arguments; no shell reads them.
	Argv []string `json:"argv" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the clean environment (PATH, HOME, LANG and RECONCILE_*).
	Env map[string]string `json:"env,omitempty"`
	// Mode is the mode to set, which says what the agent may do without asking. The agent must offer it. Default: the agent's.
	Mode string `json:"mode,omitempty" jsonschema:"maxLength=200"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a turn in which the agent sends no message for so long while no tool runs. Default 5m.
	Silence *Duration `json:"silence,omitempty" jsonschema:"default=5m"`
}

// DefaultSilence ends a silent turn of an agent that names no time.
const DefaultSilence = Duration(5 * time.Minute)

// AsCommand returns how the agent's program is run: command, what profile stands for, or a program that speaks a protocol, and a
// model at an endpoint, as a command that reads the prompt and prints text; nil for a person. Callers must not change it.
func (r *Runner) AsCommand() *CommandRunner {
	if h := r.HTTP; h != nil {
		return &CommandRunner{Stdin: "prompt", Output: "text", Timeout: h.Timeout, Silence: h.Silence}
	}
	if a := r.ACP; a != nil {
		return &CommandRunner{Argv: a.Argv, Env: a.Env, Stdin: "prompt", Output: "text", Timeout: a.Timeout, Silence: a.Silence}
	}
	if r.Command != nil || r.Profile == "" {
		return r.Command
	}
	return &CommandRunner{Profile: r.Profile, Stdin: "prompt", Output: "text", Timeout: &defaultRunTimeout}
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

// AgentStatus is the observed state of an agent. The fields other than Common are those of agentx-spec 4.3,
// and state/agent-status.json is their projection.
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

// Roles that the seeds know. An agent may have any other.
const (
	RoleGuide          = "guide"
	RoleProductManager = "product-manager"
	RoleUXDesigner     = "ux-designer"
	RoleArchitect      = "architect"
	RoleDesigner       = "designer"
	RoleAcademic       = "academic"
	RoleLibrarian      = "librarian"
	RoleArchivalist    = "archivalist"
	RoleOrchestrator   = "orchestrator"
	RoleEngineer       = "engineer"
	RoleInspector      = "inspector"
	RoleTester         = "tester"
	RoleReviewer       = "reviewer"
)

// precedences follows the order of work from the request to the review. Agents that only inform others precede those
// that use their information.
var precedences = map[string]int{
	RoleGuide: 5, RoleProductManager: 10, RoleUXDesigner: 15,
	RoleAcademic: 16, RoleLibrarian: 17, RoleArchivalist: 18,
	RoleArchitect: 20, RoleDesigner: 24, RoleOrchestrator: 28,
	RoleEngineer: 30, RoleInspector: 40, RoleTester: 42, RoleReviewer: 45,
}

// unknownPrecedence is that of an unknown role: most downstream, so that it never wins over a known one.
const unknownPrecedence = 50

// DefaultPrecedence is the precedence of agents with that role that name none: smaller is more upstream.
func DefaultPrecedence(role string) int {
	if p, ok := precedences[role]; ok {
		return p
	}
	return unknownPrecedence
}

// DefaultRunTimeout ends the run of a command agent that names no timeout.
const DefaultRunTimeout = Duration(10 * time.Minute)

var defaultRunTimeout = DefaultRunTimeout

// Default sets the defaults of missing fields. The role's default is the object's name, which only the object
// knows: see [Object.Spec].
func (s *AgentSpec) Default() {
	if s.Role != "" {
		orNew(&s.Precedence, DefaultPrecedence(s.Role))
	}
	orDefault(&s.ContextWindow, DefaultContextWindow)
	orDefault(&s.Concurrency, 1)
	orDefault(&s.PromptTokens, s.ContextWindow/4)
	if c := s.Runner.Command; c != nil {
		orDefault(&c.Stdin, "prompt")
		orDefault(&c.Output, "text")
		orNew(&c.Timeout, DefaultRunTimeout)
	}
	if a := s.Runner.ACP; a != nil {
		orNew(&a.Timeout, DefaultRunTimeout)
		orNew(&a.Silence, DefaultSilence)
	}
	if h := s.Runner.HTTP; h != nil {
		h.defaults()
	}
}

// defaultFor fills in what depends on the object's name.
func (s *AgentSpec) defaultFor(name string) {
	orDefault(&s.Role, name)
	orNew(&s.Precedence, DefaultPrecedence(s.Role))
}

// Check reports the problems of an agent's spec: a runner that is not exactly one of profile, command, acp, http and human, a
// program or an endpoint that cannot be used, a key that cannot be found, and a bad role, model or name of an agent to ask.
func (s *AgentSpec) Check(r *Report) {
	if s.Role != "" {
		checkRef(r.At("role"), s.Role)
	}
	checkLine(r.At("model"), s.Model)
	checkRefs(r, s.CanClarify, "canClarify")
	s.Budget.check(r.At("budget"))
	if s.Sandbox != nil {
		s.Sandbox.check(r)
	}
	if f := s.Instructions.File; f != "" {
		checkPath(r.At("instructions", "file"), f, reads)
	}
	c, h := s.Runner.Command, s.Runner.Human
	s.Runner.checkOne(r)
	if s.Runner.Profile != "" {
		checkRef(r.At("runner", "profile"), s.Runner.Profile)
	}
	if c != nil {
		c.check(r)
	}
	if a := s.Runner.ACP; a != nil {
		a.check(r)
	}
	if http := s.Runner.HTTP; http != nil {
		http.check(r, s.Model)
		if http.Tools == ToolsWrite && s.Workspace == WorkspaceInPlace {
			r.At("runner", "http", "tools").Errorf("conflict", "a model writes only in a workspace of its own").
				Suggest("remove workspace, or write clone")
		}
	}
	s.Runner.checkKey(r)
	if s.Memory != nil {
		s.Memory.check(r)
	}
	if h != nil {
		if s.Budget != nil {
			r.At("budget").Errorf("conflict", "what a person uses is not known").Suggest("remove budget")
		}
		checkLine(r.At("runner", "human", "contact"), h.Contact)
		if s.Workspace != "" && s.Workspace != WorkspaceInPlace {
			r.At("workspace").Errorf("conflict", "a person works where they like").Suggest("remove workspace")
		}
	}
}

// checkOne reports a runner that does not have exactly one field.
func (u *Runner) checkOne(r *Report) {
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"profile", u.Profile != ""}, {"command", u.Command != nil}, {"acp", u.ACP != nil}, {"http", u.HTTP != nil},
		{"human", u.Human != nil}} {
		if f.set {
			set = append(set, f.name)
		}
	}
	switch len(set) {
	case 0:
		r.At("runner").Errorf("missing", "says nothing").Suggest("write command with an argv, a profile as claude, or human: {}")
	case 1:
	default:
		r.At("runner", set[1]).Errorf("conflict", "a runner is either %s or %s, not both", set[0], set[1]).
			Also("the other one", "runner", set[0])
	}
}

// checkKey reports a key where nothing can be told to use it.
func (u *Runner) checkKey(r *Report) {
	at := r.At("runner", "keyFrom")
	switch u.KeyFrom.check(at); {
	case u.KeyFrom == nil, u.Profile != "", u.Command != nil && u.Command.Profile != "":
	case u.HTTP != nil:
		at.Errorf("conflict", "http has a keyFrom of its own").Suggest("move it into http")
	case u.Human != nil:
		at.Errorf("conflict", "a person needs no key").Suggest("remove it")
	default:
		at.Errorf("missing", "no profile says how the program is pointed at the metering proxy").
			Suggest("name a profile, one of the settings for a program that none of the others fits")
	}
}

func (a *ACPRunner) check(r *Report) {
	checkArgv(r.At("runner", "acp", "argv"), a.Argv)
	checkEnv(r, a.Env, "runner", "acp", "env")
	checkLine(r.At("runner", "acp", "mode"), a.Mode)
	checkTimeout(r.At("runner", "acp", "timeout"), a.Timeout)
	checkTimeout(r.At("runner", "acp", "silence"), a.Silence)
}

func (c *CommandRunner) check(r *Report) {
	if c.Profile != "" {
		checkRef(r.At("runner", "command", "profile"), c.Profile)
	}
	if len(c.Argv) > 0 {
		checkArgv(r.At("runner", "command", "argv"), c.Argv)
	} else if c.Profile == "" {
		r.At("runner", "command").Errorf("missing", "has no argv").Suggest("write argv, or a profile as claude")
	}
	checkTimeout(r.At("runner", "command", "silence"), c.Silence)
	checkEnv(r, c.Env, "runner", "command", "env")
	checkTimeout(r.At("runner", "command", "timeout"), c.Timeout)
}

// References returns soft references to the agents in canClarify, those that the agent may ask.
func (s *AgentSpec) References() []Reference {
	return softRefs(AgentKind.Name, s.CanClarify, "canClarify")
}

// PersonAgent returns the agent's name for a person with this login on GitHub, as github-ada. The memory stores the person's
// statements under it.
func PersonAgent(login string) string {
	name := personAgent + "-" + strings.ToLower(login)
	if CheckName(name) != nil {
		return personAgent
	}
	return name
}

package schemas

import (
	"slices"
	"strings"
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
	// Health says how the agent is checked before its first use. Default: it is checked if it has a fallback, or is one.
	Health *AgentCheck `json:"check,omitempty"`
	// Fallback are the agents that do the work while this one is not healthy: the first of them that is. Their own fallback does not
	// count, and people are skipped.
	Fallback []string `json:"fallback,omitempty" jsonschema:"maxItems=20"`
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

// NamedActivity is the activity of one agent. The zero activity is that of an agent without observed runs.
type NamedActivity struct {
	Name string
	AgentActivity
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

// Roles that the seeds know. An agent may have any other. An architect answers plan changes, an academic what tools a project should use;
// limits.engineers bounds engineers.
const (
	roleGuide          = "guide"
	roleProductManager = "product-manager"
	roleUXDesigner     = "ux-designer"
	RoleArchitect      = "architect"
	RoleDesigner       = "designer"
	RoleAcademic       = "academic"
	roleLibrarian      = "librarian"
	roleArchivalist    = "archivalist"
	roleOrchestrator   = "orchestrator"
	RoleEngineer       = "engineer"
	RoleInspector      = "inspector"
	RoleTester         = "tester"
	roleReviewer       = "reviewer"
)

// precedences follows the order of work from the request to the review. Agents that only inform others precede those
// that use their information.
var precedences = map[string]int{
	roleGuide: 5, roleProductManager: 10, roleUXDesigner: 15,
	RoleAcademic: 16, roleLibrarian: 17, roleArchivalist: 18,
	RoleArchitect: 20, RoleDesigner: 24, roleOrchestrator: 28,
	RoleEngineer: 30, RoleInspector: 40, RoleTester: 42, roleReviewer: 45,
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

// Default sets the defaults of missing fields. The role's default is the object's name, which only the object
// knows: see [Object.Spec].
func (s *AgentSpec) Default() {
	if s.Role != "" {
		orNew(&s.Precedence, DefaultPrecedence(s.Role))
	}
	orDefault(&s.ContextWindow, DefaultContextWindow)
	orDefault(&s.Concurrency, 1)
	orDefault(&s.PromptTokens, s.ContextWindow/4)
	if s.Health != nil {
		orNew(&s.Health.Every, defaultCheckEvery)
	}
	if c := s.Runner.Command; c != nil {
		orDefault(&c.Stdin, "prompt")
		orDefault(&c.Output, "text")
		orNew(&c.Timeout, defaultRunTimeout)
	}
	if a := s.Runner.ACP; a != nil {
		orNew(&a.Timeout, defaultRunTimeout)
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
	s.checkHealth(r)
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
				suggest("remove workspace, or write clone")
		}
	}
	s.Runner.checkKey(r)
	s.Runner.checkServers(r)
	if s.Memory != nil {
		s.Memory.check(r)
	}
	if h != nil {
		if s.Budget != nil {
			r.At("budget").Errorf("conflict", "what a person uses is not known").suggest("remove budget")
		}
		checkLine(r.At("runner", "human", "contact"), h.Contact)
		if s.Workspace != "" && s.Workspace != WorkspaceInPlace {
			r.At("workspace").Errorf("conflict", "a person works where they like").suggest("remove workspace")
		}
	}
}

// References returns soft references to the agents in canClarify, those that the agent may ask, and to those in fallback.
func (s *AgentSpec) References() []Reference {
	return append(softRefs(AgentKind.Name, s.CanClarify, "canClarify"), softRefs(AgentKind.Name, s.Fallback, "fallback")...)
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

// AgentMemory says at which use of its context an agent's knowledge is kept, and its session ends. Shares are percent of the
// window.
type AgentMemory struct {
	// Checkpoints are the shares of the window at which a checkpoint is written, ascending. Default: by role.
	Checkpoints []int `json:"checkpoints,omitempty" jsonschema:"maxItems=10"`
	// CompactAt is the share from which the session ends with its turn: the next turn begins a new session, with the checkpoints
	// in its prompt. A running turn is ended at 95, or at compactAt if that is more. 100 leaves it to the agent. Default: by role.
	CompactAt int `json:"compactAt,omitempty" jsonschema:"minimum=1,maximum=100"`
	// Target is the share that the first prompt of a new session takes at most; the oldest checkpoints are left out for it.
	// Default: by role.
	Target int `json:"target,omitempty" jsonschema:"minimum=1,maximum=100"`
	// Summary says which fields a checkpoint has. Default: by role.
	Summary string `json:"summary,omitempty" jsonschema:"enum=guide_checkpoint,enum=librarian_checkpoint,enum=academic_research_paper,enum=architect_workflow,enum=pipeline_handoff,enum=inspector_checkpoint,enum=tester_checkpoint"`
}

// Kinds of summaries.
const (
	SummaryGuide     = "guide_checkpoint"
	SummaryLibrarian = "librarian_checkpoint"
	SummaryAcademic  = "academic_research_paper"
	SummaryArchitect = "architect_workflow"
	SummaryHandoff   = "pipeline_handoff"
	SummaryInspector = "inspector_checkpoint"
	SummaryTester    = "tester_checkpoint"
)

// endTurnAt is the share of the window, in percent, at which a running turn is ended.
const endTurnAt = 95

// roleMemories are the defaults of roles. Other roles have that of the engineer: no checkpoint before the hand-off.
var roleMemories = map[string]AgentMemory{
	roleGuide:     {[]int{50, 75, 90}, 95, 30, SummaryGuide},
	roleLibrarian: {[]int{25, 50, 75}, 75, 25, SummaryLibrarian},
	RoleAcademic:  {[]int{85}, 95, 30, SummaryAcademic},
	RoleArchitect: {[]int{85}, 95, 30, SummaryArchitect},
	RoleInspector: {[]int{85}, 95, 30, SummaryInspector},
	RoleTester:    {[]int{85}, 95, 30, SummaryTester},
	RoleEngineer:  {nil, 95, 30, SummaryHandoff},
	RoleDesigner:  {nil, 95, 30, SummaryHandoff},
}

// MemoryOf returns the agent's memory with the defaults of its role. Callers must not change it.
func (s *AgentSpec) MemoryOf() AgentMemory {
	m, ok := roleMemories[s.Role]
	if !ok {
		m = roleMemories[RoleEngineer]
	}
	if s.Memory == nil {
		return m
	}
	given := *s.Memory
	if given.Checkpoints != nil {
		m.Checkpoints = given.Checkpoints
		m.CompactAt = max(m.CompactAt, slices.Max(append([]int{0}, given.Checkpoints...)))
	}
	if given.CompactAt != 0 {
		m.CompactAt = given.CompactAt
		m.Checkpoints = slices.DeleteFunc(slices.Clone(m.Checkpoints), func(at int) bool { return at > given.CompactAt })
	}
	if given.Target != 0 {
		m.Target = given.Target
	}
	if given.Summary != "" {
		m.Summary = given.Summary
	}
	m.Target = min(m.Target, m.CompactAt)
	return m
}

// EndAt is the share of the window at which a running turn is ended.
func (m AgentMemory) EndAt() int { return max(endTurnAt, m.CompactAt) }

// Marks are the shares that matter, ascending: the checkpoints, the end of a session, and the end of a turn.
func (m AgentMemory) Marks() []int {
	all := append(slices.Clone(m.Checkpoints), m.CompactAt, m.EndAt())
	slices.Sort(all)
	return slices.Compact(all)
}

// check reports shares out of range or order.
func (m *AgentMemory) check(r *Report) {
	for i, at := range m.Checkpoints {
		spot := r.At("memory", "checkpoints", i)
		switch {
		case at < 1 || at > 100:
			spot.Errorf("out-of-range", "%d is no share of a window in percent", at).suggest("write a number from 1 to 100")
		case i > 0 && at <= m.Checkpoints[i-1]:
			spot.Errorf("conflict", "%d follows %d", at, m.Checkpoints[i-1]).suggest("write the shares in ascending order, each once")
		case m.CompactAt != 0 && at > m.CompactAt:
			spot.Errorf("conflict", "no session gets to %d %%: it ends at %d", at, m.CompactAt).also("the end of a session", "memory", "compactAt")
		}
	}
	if m.CompactAt != 0 && m.Target > m.CompactAt {
		r.At("memory", "target").Errorf("conflict", "a session that begins with %d %% of its window would end at once: compactAt is %d",
			m.Target, m.CompactAt).also("the end of a session", "memory", "compactAt")
	}
}

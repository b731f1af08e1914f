package schemas

import "slices"

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

// EndTurnAt is the share of the window, in percent, at which a running turn is ended.
const EndTurnAt = 95

// roleMemories are the defaults of roles. Other roles have that of the engineer: no checkpoint before the hand-off.
var roleMemories = map[string]AgentMemory{
	RoleGuide:     {[]int{50, 75, 90}, 95, 30, SummaryGuide},
	RoleLibrarian: {[]int{25, 50, 75}, 75, 25, SummaryLibrarian},
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
func (m AgentMemory) EndAt() int { return max(EndTurnAt, m.CompactAt) }

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
			spot.Errorf("out-of-range", "%d is no share of a window in percent", at).Suggest("write a number from 1 to 100")
		case i > 0 && at <= m.Checkpoints[i-1]:
			spot.Errorf("conflict", "%d follows %d", at, m.Checkpoints[i-1]).Suggest("write the shares in ascending order, each once")
		case m.CompactAt != 0 && at > m.CompactAt:
			spot.Errorf("conflict", "no session gets to %d %%: it ends at %d", at, m.CompactAt).Also("the end of a session", "memory", "compactAt")
		}
	}
	if m.CompactAt != 0 && m.Target > m.CompactAt {
		r.At("memory", "target").Errorf("conflict", "a session that begins with %d %% of its window would end at once: compactAt is %d",
			m.Target, m.CompactAt).Also("the end of a session", "memory", "compactAt")
	}
}

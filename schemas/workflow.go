package schemas

import "slices"

// WorkflowKind is the kind Workflow.
var WorkflowKind = Kind{
	Name: "Workflow", Plural: "workflows", Aliases: []string{"wf"},
	Short:     "Steps that agents go through for an issue, with what each may ask whom (AgentX steps).",
	New:       func() Spec { return new(WorkflowSpec) },
	NewStatus: func() Status { return new(WorkflowStatus) },
}

// WorkflowSpec is AgentX's step list. The YAML form uses the field names of the TOML form, so that steps can be copied
// between them. In the TOML form the object's name is workflow.name.
type WorkflowSpec struct {
	// Title says in a line what the workflow is for.
	Title string `json:"title,omitempty" jsonschema:"maxLength=200"`
	// Description says more.
	Description string `json:"description,omitempty" jsonschema:"maxLength=10000"`
	// Params are the parameters of its runs, by name; a start has their values.
	Params map[string]Param `json:"params,omitempty"`
	// Steps are the steps; needs orders them.
	Steps []Step `json:"steps" jsonschema:"minItems=1,maxItems=10000"`
}

// Limits of clarifications (agentx-spec 4.5 and 6.2). The rounds are the defaults and the hard caps.
const (
	ClarifyRoundsBlocking    = 5
	ClarifyRoundsOpen        = 6 // of questions that do not block
	DefaultClarifySLAMinutes = 30
)

// Step is one [[steps]] entry.
type Step struct {
	// ID is unique within the workflow.
	ID string `json:"id" jsonschema:"minLength=1,maxLength=63"`
	// Title says in a line what happens.
	Title string `json:"title,omitempty" jsonschema:"maxLength=200"`
	// Agent is the agent of the step.
	Agent string `json:"agent" jsonschema:"minLength=1,maxLength=63"`
	// Needs names the steps that must be done before.
	Needs []string `json:"needs,omitempty"`
	// Optional says that a start may leave the step out, and that a failure of it does not fail the run.
	Optional bool `json:"optional,omitempty"`
	// Condition says when the step is taken, as an expression like when of a node.
	Condition string `json:"condition,omitempty" jsonschema:"maxLength=2000"`
	// Output is the path of what the step produces.
	Output string `json:"output,omitempty" jsonschema:"maxLength=1000"`
	// Prompt is what the agent is told, a template: what is between {{ and }} is an expression over issue.title, issue.text, issue.comments,
	// params and needs. Default: the title, the output and its template.
	Prompt string `json:"prompt,omitempty" jsonschema:"maxLength=100000"`
	// Template is the path of the template that the output follows.
	Template string `json:"template,omitempty" jsonschema:"maxLength=1000"`
	// Iterate repeats the step until completion_criteria hold.
	Iterate bool `json:"iterate,omitempty"`
	// IterateFrom is the earlier step that a repetition goes back to; the steps between are repeated too. Default: the step itself.
	IterateFrom string `json:"iterate_from,omitempty" jsonschema:"maxLength=63"`
	// MaxIterations bounds the repetitions.
	MaxIterations int `json:"max_iterations,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// CompletionCriteria are what must hold for an iterating step to be done: an expression over its result, or text that the agent judges.
	CompletionCriteria string `json:"completion_criteria,omitempty" jsonschema:"maxLength=2000"`
	// Approve says who lets the step start, or what the task of a person asks for.
	Approve *Approve `json:"approve,omitempty"`
	// StatusOnStart is the issue status that is set when the step starts.
	StatusOnStart string `json:"status_on_start,omitempty" jsonschema:"maxLength=100"`
	// StatusOnComplete is the issue status that is set when the step is done.
	StatusOnComplete string `json:"status_on_complete,omitempty" jsonschema:"maxLength=100"`
	// CanClarify names the agents that the step's agent may ask; an empty list permits none.
	CanClarify []string `json:"can_clarify,omitempty"`
	// ClarifyMaxRounds bounds the rounds of one question. Default 5, for questions that do not block 6, which are also the
	// most that there can be.
	ClarifyMaxRounds int `json:"clarify_max_rounds,omitempty" jsonschema:"minimum=1,maximum=100,default=5"`
	// ClarifySLAMinutes is the time for an answer; 0 means at once. Default: the settings', 30.
	ClarifySLAMinutes *int `json:"clarify_sla_minutes,omitempty" jsonschema:"minimum=0,maximum=525600,default=30"`
	// ClarifyBlockingAllowed says whether a question may block the asking agent. Default true.
	ClarifyBlockingAllowed *bool `json:"clarify_blocking_allowed,omitempty" jsonschema:"default=true"`
}

// WorkflowStatus is the observed state of a workflow.
type WorkflowStatus struct {
	Common
	// Layers are the step ids in the order in which they can be taken; the steps of one layer are independent.
	Layers [][]string `json:"layers,omitempty"`
	// Runs counts the runs of the workflow, its DAGs. Active names those that have not ended, sorted.
	Runs   int      `json:"runs,omitempty"`
	Active []string `json:"active,omitempty"`
}

// Default sets the defaults of missing fields.
func (s *WorkflowSpec) Default() {
	for name, p := range s.Params {
		orDefault(&p.Type, paramString)
		s.Params[name] = p
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		orNew(&st.ClarifyBlockingAllowed, true)
	}
}

// Check reports the problems of a workflow's steps: bad ids, paths and names, needs that do not exist, and cycles.
func (s *WorkflowSpec) Check(r *Report) {
	checkLine(r.At("title"), s.Title)
	tasks := make([]task, len(s.Steps))
	for i := range s.Steps {
		st := &s.Steps[i]
		st.check(r, i)
		tasks[i] = task{st.ID, st.Needs}
	}
	checkGraph(r, graphWords{list: "steps", name: "id", noun: "step"}, tasks)
	for i := range s.Steps {
		s.checkIterate(r.At("steps", i), &s.Steps[i])
	}
	if !slices.ContainsFunc(r.Findings(), func(f *Finding) bool { return f.Severity == Error }) {
		s.checkStart(r)
	}
}

// checkIterate reports a step that goes back to one that is not before it, and fields without effect where nothing is repeated.
func (s *WorkflowSpec) checkIterate(at Spot, st *Step) {
	switch {
	case !st.Iterate && st.IterateFrom != "":
		at.At("iterate_from").Errorf("no-effect", "has no effect without iterate: true").suggest("add iterate: true")
	case !st.Iterate && st.MaxIterations > 0:
		at.At("max_iterations").warnf("no-effect", "has no effect without iterate: true")
	case st.MaxIterations > maxRounds:
		at.At("max_iterations").warnf("no-effect", "a step is repeated at most %d times: more has no effect", maxRounds)
	case st.IterateFrom != "" && st.IterateFrom != st.ID && !s.before(st.IterateFrom, st):
		at.At("iterate_from").Errorf("bad-reference", "step %q does not need %q, directly or through other steps", st.ID, st.IterateFrom).
			near(st.IterateFrom, st.Needs)
	}
}

// before reports whether a step needs the step of an id, directly or through others.
func (s *WorkflowSpec) before(id string, of *Step) bool {
	seen := map[string]bool{}
	for todo := of.Needs; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if next == id {
			return s.Step(id) != nil
		}
		if st := s.Step(next); st != nil && !seen[next] {
			seen[next] = true
			todo = append(todo[:len(todo):len(todo)], st.Needs...)
		}
	}
	return false
}

// Step returns the step of an id, or nil.
func (s *WorkflowSpec) Step(id string) *Step {
	for i := range s.Steps {
		if s.Steps[i].ID == id {
			return &s.Steps[i]
		}
	}
	return nil
}

func (st *Step) check(r *Report, i int) {
	at := func(field ...any) Spot { return r.At("steps", i).At(field...) }
	checkRef(at("id"), st.ID)
	checkRef(at("agent"), st.Agent)
	checkLine(at("title"), st.Title)
	if st.Output != "" {
		checkOutput(at("output"), st.Output)
	}
	if st.Template != "" {
		checkPath(at("template"), st.Template, reads)
	}
	checkLine(at("status_on_start"), st.StatusOnStart)
	checkLine(at("status_on_complete"), st.StatusOnComplete)
	checkAskable(at("can_clarify"), st.Agent, st.CanClarify)
	checkRounds(at("clarify_max_rounds"), st.ClarifyMaxRounds)
}

// References returns soft references to the agents of the workflow's steps and to the agents that a step may ask
// (can_clarify).
func (s *WorkflowSpec) References() []Reference {
	var out []Reference
	for i, st := range s.Steps {
		out = append(out, Reference{Field: []any{"steps", i, "agent"}, To: Ref{Kind: AgentKind.Name, Name: st.Agent}})
		out = append(out, softRefs(AgentKind.Name, st.CanClarify, "steps", i, "can_clarify")...)
	}
	return out
}

package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas/validator"
)

// DAGKind is the kind DAG.
var DAGKind = Kind{
	Name: "DAG", Plural: "dags", Aliases: []string{"d"},
	Short:     "Commands and agent tasks with dependencies, run as soon as what they need has succeeded.",
	New:       func() Spec { return new(DAGSpec) },
	NewStatus: func() Status { return new(DAGStatus) },
}

// DAGSpec is the desired state of a DAG: that all its nodes have succeeded.
type DAGSpec struct {
	// Session is the session that the DAG belongs to; its nodes start only while that session is Active. A template needs none.
	Session string `json:"session,omitempty" jsonschema:"minLength=1,maxLength=63"`
	// Issue is the number of the issue that the DAG serves. Default: the session's.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Description says what the DAG is for.
	Description string `json:"description,omitempty" jsonschema:"maxLength=10000"`
	// Workflow says which workflow's run the DAG is; a start of the workflow makes it.
	Workflow *WorkflowRun `json:"workflow,omitempty"`
	// Answers names the plan change that the DAG's node answers; the plan change makes the DAG.
	Answers string `json:"answers,omitempty" jsonschema:"maxLength=63"`
	// Fixes names the session whose verification found what the DAG mends, or plans to; the session makes the DAG.
	Fixes string `json:"fixes,omitempty" jsonschema:"maxLength=63"`
	// Policy bounds and steers execution.
	Policy Policy `json:"policy,omitzero"`
	// Budget bounds what the agents of the DAG's nodes together use. Default: no bound.
	Budget *Budget `json:"budget,omitempty"`
	// Schedule says when the DAG runs, at one or several times; it waits for the first. Default: at once.
	Schedule Schedules `json:"schedule,omitempty"`
	// Params are the parameters of the DAG, by name.
	Params map[string]Param `json:"params,omitempty"`
	// With are values of parameters. Default: those of the session, then those of the parameters.
	With map[string]any `json:"with,omitempty"`
	// Template says that the DAG never runs on its own: other DAGs call it.
	Template bool `json:"template,omitempty"`
	// Concurrency puts the DAG into a group of which one DAG at a time works. Default: no group.
	Concurrency *Concurrency `json:"concurrency,omitempty"`
	// Nodes are the tasks.
	Nodes []Node `json:"nodes" jsonschema:"minItems=1,maxItems=20000"`
	// Finally are tasks that run when all nodes have ended, in whatever state.
	Finally []Node `json:"finally,omitempty" jsonschema:"maxItems=100"`
	// OnFailure are notifications of each end at which the DAG is Failed.
	OnFailure Notifications `json:"onFailure,omitempty" jsonschema:"maxItems=20"`
	// OnSuccess are notifications of each end at which the DAG has Succeeded.
	OnSuccess Notifications `json:"onSuccess,omitempty" jsonschema:"maxItems=20"`
	// Expansion says of what an expanded spec was made; nil for one as it was written.
	Expansion *Expansion `json:"-"`
}

// Policy bounds and steers the execution of a DAG.
type Policy struct {
	// MaxConcurrency bounds how many nodes run at once. Default: the session's maxConcurrentTasks.
	MaxConcurrency int `json:"maxConcurrency,omitempty" jsonschema:"minimum=1,maximum=10000"`
	// FailFast stops starting and cancels what runs at the first failure. Default true.
	FailFast *bool `json:"failFast,omitempty" jsonschema:"default=true"`
	// ContinueOnFailure is the opposite of failFast, as another way to say it; setting both is refused.
	ContinueOnFailure *bool `json:"continueOnFailure,omitempty"`
	// Retry is the default for nodes that have none of their own.
	Retry *Retry `json:"retry,omitempty"`
	// RerunOnAgentChange makes nodes run again, and what comes after them, when their agent, its model, its program, its
	// environment or its instructions change; of a file with instructions the path counts. Default false.
	RerunOnAgentChange bool `json:"rerunOnAgentChange,omitempty"`
	// OnChange says what becomes of running nodes that a change of the spec concerns: replace ends them, and starts them by the new
	// definition; mergePending lets them end by the former one first; abort ends all nodes, and starts the whole DAG again.
	// Default replace.
	OnChange string `json:"onChange,omitempty" jsonschema:"enum=replace,enum=mergePending,enum=abort"`
	// Timeout bounds the time in which a node of the DAG runs, backs off or waits for a place, from the first start. It stands
	// still while all that is left waits for people, and while nothing may start. In a call it bounds the nodes of that call in the same
	// way, besides the calling DAG's. Default: none.
	Timeout *Duration `json:"timeout,omitempty"`
}

// Retry says how often, and how long after, a failed node is run again: the wait before attempt n+1 is
// min(backoff·factor^(n-1), max).
type Retry struct {
	// Limit is the number of further attempts after the first. Default 0.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=0,maximum=100,default=0"`
	// Backoff is the wait before the first retry. Default 1s.
	Backoff *Duration `json:"backoff,omitempty" jsonschema:"default=1s"`
	// Factor multiplies the wait from retry to retry. Default 2.
	Factor float64 `json:"factor,omitempty" jsonschema:"minimum=1,maximum=100,default=2"`
	// Max bounds the wait. Default 1m.
	Max *Duration `json:"max,omitempty" jsonschema:"default=1m"`
}

// Node returns the node of that name, or nil.
func (s *DAGSpec) Node(name string) *Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// AllNeeds lists the nodes that a node needs, also by others; each once. It takes time linear in the size of the DAG.
func (s *DAGSpec) AllNeeds(node string) (out []string) {
	needs := make(map[string][]string, len(s.Nodes))
	for i := range s.Nodes {
		needs[s.Nodes[i].Name] = s.Nodes[i].Needs
	}
	seen := map[string]bool{}
	for todo := slices.Clone(needs[node]); len(todo) > 0; {
		name := todo[0]
		if todo = todo[1:]; !seen[name] {
			seen[name] = true
			out, todo = append(out, name), append(todo, needs[name]...)
		}
	}
	return out
}

// OutputPaths returns the paths of the declared outputs of each node of the DAG that has some, by the node's name.
func (s *DAGSpec) OutputPaths() map[string][]string {
	out := map[string][]string{}
	for i := range s.Nodes {
		if paths := s.Nodes[i].Outputs.Paths(); len(paths) > 0 {
			out[s.Nodes[i].Name] = paths
		}
	}
	return out
}

// Phases of a DAG.
const (
	DAGPending   = "Pending"   // nothing has started
	DAGRunning   = "Running"   // something runs or waits for its turn
	DAGPaused    = "Paused"    // an action, the session or a person holds it
	DAGSucceeded = "Succeeded" // every node Succeeded, or was Skipped by when or an action
	DAGFailed    = "Failed"
	DAGCancelled = "Cancelled"
)

// States of a node.
const (
	NodePending   = "Pending"   // waits for its needs
	NodeQueued    = "Queued"    // could run, waits for a place or for its back-off
	NodeRunning   = "Running"   //
	NodeSucceeded = "Succeeded" //
	NodeFailed    = "Failed"    // and will not be retried automatically
	NodeBlocked   = "Blocked"   // held, or waits for a person or an answer
	NodeSkipped   = "Skipped"   //
	NodeCancelled = "Cancelled" //
)

// DAGStatus is the observed state of a DAG.
type DAGStatus struct {
	Common
	// Layers are the node names in execution order; the nodes of one layer do not need each other.
	Layers [][]string `json:"layers,omitempty"`
	// Nodes holds each node's state by name.
	Nodes *NodeStatuses `json:"nodes,omitempty"`
	// Progress counts nodes that are done (Succeeded or Skipped) and all.
	Progress Progress `json:"progress"`
	// Running counts the nodes that run now.
	Running int `json:"running,omitempty"`
	// IssueStatus is the status of the issue by the nodes that set one.
	IssueStatus string `json:"issueStatus,omitempty"`
	// Session is the session that the DAG was last decided for.
	Session string `json:"session,omitempty"`
	// Hold is the verb of an action on the whole DAG that is in force: pause, or empty.
	Hold string `json:"hold,omitempty"`
	// StartedAt is the first start of the present generation of work, FinishedAt its end.
	StartedAt  Time `json:"startedAt,omitzero"`
	FinishedAt Time `json:"finishedAt,omitzero"`
	// Active are the times, in order, that count for policy.timeout, also of called DAGs; the last one is open while it goes on. It is
	// there only where there is such a limit, until the work has ended.
	Active []Span `json:"active,omitempty"`
	// Group is the place in the concurrency group; nil without one.
	Group *GroupStatus `json:"group,omitempty"`
	// Schedule is how far the schedule is; nil without one.
	Schedule *ScheduleStatus `json:"schedule,omitempty"`
	// Advised names the preferences that the recommendations of the DAG have led to. One that a person removes does not come back.
	Advised []string `json:"advised,omitempty"`
	// Notices are the notifications of the latest end; nil without any.
	Notices []Notice `json:"notices,omitempty"`
	// Actions are the Action objects applied to this DAG, in the order of application.
	Actions []AppliedAction `json:"actions,omitempty"`
}

// Span is a time from one moment to another; without To it goes on.
type Span struct {
	From Time `json:"from"`
	To   Time `json:"to,omitzero"`
}

// NodeStatus is the state of one node.
type NodeStatus struct {
	State string `json:"state"`
	// Key is the digest that decides whether the node must run (decision 1); Generation is part of it and is raised by
	// retry actions.
	Key        string `json:"key,omitempty"`
	Generation int    `json:"generation,omitempty"`
	// Task is the digest of the task where Key differs from it: Key was made by an earlier version, or with another
	// rerunOnAgentChange, and counts as long as the task is the same.
	Task string `json:"task,omitempty"`
	// Inputs is the digest of the files that the declared inputs matched when Key was made.
	Inputs string `json:"inputs,omitempty"`
	// Tools are the versions of the declared tools that Key was made with.
	Tools map[string]string `json:"tools,omitempty"`
	// Round is the round of a loop that Key is about, from 2 on; absent in the first.
	Round int `json:"round,omitempty"`
	// Verb is the verb of an action on the node that is in force: cancel, skip, hold or approve; or cleanup, where the whole
	// DAG was cancelled and only a need that did not succeed lets the node run; kill and end for other modes of cancel; or again and
	// a number, where the node runs again after its success of that number.
	Verb string `json:"verb,omitempty"`
	// Reason is a PascalCase word, Message a sentence, for every state but Pending and Succeeded.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Attempts counts finished and running attempts under Key; interrupted and suspended ones are not counted.
	Attempts int `json:"attempts,omitempty"`
	// QueuedAt is since when a queued node waits for a place.
	QueuedAt   Time            `json:"queuedAt,omitzero"`
	StartedAt  Time            `json:"startedAt,omitzero"`
	FinishedAt Time            `json:"finishedAt,omitzero"`
	ExitCode   *int            `json:"exitCode,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	// Output is the end of what the last attempt printed, bounded.
	Output string `json:"output,omitempty"`
	// Log is the path of the full log below the root; it is local and may be gone.
	Log string `json:"log,omitempty"`
	// RetryAt is when the next attempt is due.
	RetryAt Time `json:"retryAt,omitzero"`
	// Approvals are those of people under Key, for a node that has approve.
	Approvals []Approval `json:"approvals,omitempty"`
	// Landed says whether the commit of the node's workspace is part of the branch; nil for a node that worked in the tree.
	Landed *Landed `json:"landed,omitempty"`
	// Pipeline says how far the inspection and the tests of the node's change are; nil without a pipeline.
	Pipeline *PipelineStatus `json:"pipeline,omitempty"`
	// Handoff has the hand-offs of the agent's work under Key; nil without any.
	Handoff *Handoffs `json:"handoff,omitempty"`
}

// Landed says whether a commit is part of the branch that it is for.
type Landed struct {
	Status ConditionStatus `json:"status"`
	// Reason is Landed, Unchecked or NoChange, or why it is not: Landing, WaitsForApproval, TreeDirty, Conflict, TestsConflict, ChecksFailed or Refused.
	Reason string `json:"reason"`
	Commit string `json:"commit,omitempty"` // on the branch
}

// Reasons of Landed.
const (
	LandedChecked   = "Landed"
	LandedUnchecked = "Unchecked"
	LandedNoChange  = "NoChange"
	LandedSoon      = "Landing"
	LandedHeld      = "WaitsForApproval"
	LandedDirty     = "TreeDirty"
	LandedConflict  = "Conflict"
	// LandedTestsConflict: only the tests conflict that another agent wrote of the change.
	LandedTestsConflict = "TestsConflict"
	LandedFailed        = "ChecksFailed"
	LandedRefused       = "Refused"
)

// Defaults of Retry.
const (
	defaultBackoff    = Duration(time.Second)
	defaultFactor     = 2
	defaultMaxBackoff = Duration(time.Minute)
)

// Default sets the defaults of missing fields. Fields that follow the session (maxConcurrency, issue, priority) stay
// empty: only the tree knows it.
func (s *DAGSpec) Default() {
	if s.Policy.FailFast == nil && s.Policy.ContinueOnFailure == nil {
		orNew(&s.Policy.FailFast, true)
	}
	orNew(&s.Policy.Retry, Retry{})
	s.Policy.Retry.fill()
	for name, p := range s.Params {
		orDefault(&p.Type, paramString)
		s.Params[name] = p
	}
	for _, nodes := range [][]Node{s.Nodes, s.Finally} {
		for i := range nodes {
			nodes[i].fill()
		}
	}
}

func (n *Node) fill() {
	if n.Retry != nil {
		n.Retry.fill()
	}
	if n.Repeat != nil {
		orDefault(&n.Repeat.Max, 3)
	}
	if n.Matrix != nil {
		orDefault(&n.Matrix.Max, 256)
	}
}

func (r *Retry) fill() {
	orNew(&r.Backoff, defaultBackoff)
	orDefault(&r.Factor, defaultFactor)
	orNew(&r.Max, defaultMaxBackoff)
}

// FailsFast reports whether the policy ends the DAG at the first failure: by failFast or continueOnFailure, and true if it
// sets neither.
func (p Policy) FailsFast() bool {
	switch {
	case p.FailFast != nil:
		return *p.FailFast
	case p.ContinueOnFailure != nil:
		return !*p.ContinueOnFailure
	}
	return true
}

// Wait is the time between the end of a failed attempt and the next one: min(backoff·factor^(attempt-1), max), where
// attempt counts from 1. It never overflows.
func (r Retry) Wait(attempt int) time.Duration {
	r.fill()
	wait, most := float64(*r.Backoff), float64(*r.Max)
	for range attempt - 1 {
		if wait >= most {
			break
		}
		wait *= r.Factor
	}
	return time.Duration(min(wait, most))
}

// Check reports the problems of a DAG's spec: of the policy, with its timeout and retry; of the nodes, bad names, paths,
// patterns, schemas and variables, or not exactly one thing to do; needs that do not exist, and cycles. Whether When
// compiles is judged by the controllers, which own expressions.
func (s *DAGSpec) Check(r *Report) {
	switch {
	case s.Session != "":
		checkRef(r.At("session"), s.Session)
	case !s.Template:
		r.At("session").Errorf("missing", "is missing").suggest("add session: the session that the DAG belongs to")
	}
	p := s.Policy
	if p.FailFast != nil && p.ContinueOnFailure != nil {
		r.At("policy", "continueOnFailure").Errorf("conflict", "failFast and continueOnFailure exclude each other").
			suggest("keep one of them").also("the other one", "policy", "failFast")
	}
	checkTimeout(r.At("policy", "timeout"), p.Timeout)
	p.Retry.check(r.At("policy", "retry"))
	s.Budget.check(r.At("budget"))
	s.Schedule.check(r)
	s.Concurrency.check(r.At("concurrency"))
	s.Workflow.check(r.At("workflow"))
	s.OnFailure.check(r, OnFailure)
	s.OnSuccess.check(r, OnSuccess)
	if s.Answers != "" {
		checkRef(r.At("answers"), s.Answers)
	}
	if s.Fixes != "" {
		checkRef(r.At("fixes"), s.Fixes)
		if s.Fixes != s.Session {
			r.At("fixes").Errorf("conflict", "names another session than the DAG's").suggest("remove it: reconcile writes it")
		}
	}
	tasks := make([]task, len(s.Nodes))
	compiled := map[string]*validator.Error{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		s.plain(n).check(r, "nodes", i)
		checkExpression(r.At("nodes", i, "when"), n.When, s.scope(n), "needs.build.exitCode == 0")
		n.checkSchema(r.At("nodes", i), compiled)
		tasks[i] = task{n.Name, n.Needs}
	}
	checkGraph(r, graphWords{list: "nodes", name: "name", noun: "node"}, tasks)
	s.checkDashes(r)
	s.checkRepeats(r)
	s.checkExpansion(r, compiled)
}

// checkDashes reports names that are one in the names of variables, where a dash becomes an underscore.
func (s *DAGSpec) checkDashes(r *Report) {
	first := map[string]int{}
	for i := range s.Nodes {
		name := s.Nodes[i].Name
		plain := strings.ReplaceAll(name, "-", "_")
		at, ok := first[plain]
		switch {
		case !ok:
			first[plain] = i
		case s.Nodes[at].Name != name:
			r.At("nodes", i, "name").Errorf("duplicate-name", "%q and %q differ in - and _ only, and the results of both would "+
				"be in RECONCILE_NEED_%s_RESULT", name, s.Nodes[at].Name, strings.ToUpper(plain)).
				also("the first one", "nodes", at, "name")
		}
	}
}

func (r *Retry) check(at Spot) {
	if r == nil || r.Backoff == nil || r.Max == nil {
		return
	}
	if *r.Backoff > *r.Max {
		at.At("backoff").Errorf("out-of-range", "the first wait, %s, is longer than the longest, %s", r.Backoff, r.Max).
			suggest("raise max")
	}
}

// References returns hard references to the session of the DAG and to the agents of its nodes. All of them must exist.
func (s *DAGSpec) References() []Reference {
	var out []Reference
	if s.Session != "" {
		out = append(out, Reference{Field: []any{"session"}, To: Ref{Kind: SessionKind.Name, Name: s.Session}, Hard: true})
	}
	if w := s.Workflow; w != nil {
		out = append(out, Reference{Field: []any{"workflow", "name"}, To: Ref{Kind: WorkflowKind.Name, Name: w.Name}})
	}
	if s.Answers != "" {
		out = append(out, Reference{Field: []any{"answers"}, To: PlanChangeKind.Ref(s.Answers)})
	}
	for i := range s.Nodes {
		out = s.Nodes[i].references(out, "nodes", i)
	}
	for i := range s.Finally {
		out = s.Finally[i].references(out, "finally", i)
	}
	return out
}

// references adds hard references to the agents of a node, and to the DAG that it calls.
func (n *Node) references(out []Reference, list string, i int) []Reference {
	if n.Agent != "" {
		out = append(out, Reference{Field: []any{list, i, "agent"}, To: Ref{Kind: AgentKind.Name, Name: n.Agent}, Hard: true})
	}
	if n.DAG != "" {
		out = append(out, Reference{Field: []any{list, i, "dag"}, To: Ref{Kind: DAGKind.Name, Name: n.DAG}, Hard: true})
	}
	return n.Pipeline.references(out, list, i, "pipeline")
}

func (s *DAGStatus) appliedActions() []AppliedAction { return s.Actions }

func (s *DAGStatus) nodeStatuses() *NodeStatuses { return s.Nodes }

// roomForNodes has room for as many nodes as there can be: the given one, if that suffices. The decoder makes it for ten, and then for twice as many again
// and again; nodes are large.
func roomForNodes(canonical []byte, room []Node) []Node {
	switch n := bytes.Count(canonical, []byte(`"name":`)); {
	case n == 0:
		return nil
	case n <= cap(room):
		return room
	default:
		return make([]Node, 0, n)
	}
}

// Priority orders work: critical before high before normal before low before background.
type Priority string

// Priorities returns the five priorities, by rank.
func Priorities() []Priority { return []Priority{Critical, High, Normal, Low, Background} }

// Rank is 0 for critical to 4 for background; unknown words rank as normal.
func (p Priority) Rank() int {
	switch p {
	case Critical:
		return 0
	case High:
		return 1
	case Low:
		return 3
	case Background:
		return 4
	}
	return 2
}

// InputGlobs returns the globs of each node that declares inputs, by the node's name; nil when none does.
func (s *DAGSpec) InputGlobs() map[string][]string {
	var out map[string][]string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if len(n.Inputs) == 0 {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[n.Name] = n.Inputs
	}
	return out
}

package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// PlanChangeKind is the kind PlanChange.
var PlanChangeKind = Kind{
	Name: "PlanChange", Plural: "planchanges", Aliases: []string{"pc"},
	Short:     "A request to change the nodes of a DAG, or to help one that is blocked: an architect or a person answers it.",
	New:       func() Spec { return new(PlanChangeSpec) },
	NewStatus: func() Status { return new(PlanChangeStatus) },

	Accepted: func(s Status) bool { return s.Base().Phase != "" },
}

// What a plan change asks for.
const (
	ChangeExtend  = "extend"
	ChangeModify  = "modify"
	ChangeReplace = "replace"
	ChangeFix     = "fix"
	// ChangeHandoff is asked by reconcile itself: an architect agrees that the work on a node is handed over.
	ChangeHandoff = "handoff"
)

// PlanChangeSpec asks for a change of a plan. It is immutable once a run has taken it.
type PlanChangeSpec struct {
	// Target is the DAG or the session whose plan is to change, as kind/name: dag/checks.
	Target string `json:"target" jsonschema:"minLength=1,maxLength=130"`
	// Change says what is asked for: extend adds nodes; modify changes, adds and removes them; replace also removes all nodes that have
	// not succeeded and that the edit does not name; fix is as modify, for what failed or is blocked. handoff is what reconcile asks
	// when the work on a node is handed over, and no one else.
	Change string `json:"change" jsonschema:"enum=extend,enum=modify,enum=replace,enum=fix,enum=handoff"`
	// Reason says why, 1 to 2000 characters. Of an escalation it is the blocker.
	Reason string `json:"reason" jsonschema:"minLength=1,maxLength=2000"`
	// Node is the node of the target that escalates: it waits for the answer, and goes on with it.
	Node string `json:"node,omitempty" jsonschema:"maxLength=63"`
	// BlockerType says what kind of blocker it is: access, dependency, environment, information, plan, or other.
	BlockerType string `json:"blockerType,omitempty" jsonschema:"enum=access,enum=dependency,enum=environment,enum=information,enum=plan,enum=other"`
	// Tried is what was tried against the blocker, in order.
	Tried []string `json:"tried,omitempty" jsonschema:"maxItems=50"`
	// Blocked are the nodes that cannot go on.
	Blocked []string `json:"blocked,omitempty" jsonschema:"maxItems=1000"`
	// Failed are the nodes that failed.
	Failed []string `json:"failed,omitempty" jsonschema:"maxItems=1000"`
	// Priority orders what people and architects are asked. Default: high. From a run, critical counts as high.
	Priority Priority `json:"priority,omitempty" jsonschema:"enum=critical,enum=high,enum=normal,enum=low,enum=background"`
	// Context is what else is to be known, by name; at most 20,000 characters of JSON.
	Context map[string]any `json:"context,omitempty"`
	// Suggestions are the changes that the requester proposes. An answer without an edit of its own accepts them.
	Suggestions *PlanEdit `json:"suggestions,omitempty"`
	// By is the agent or the person that asks.
	By string `json:"by,omitempty" jsonschema:"maxLength=100"`
	// Proof says how it is known who that is: the token of a run, the account of the process, or not at all (claimed). Without it an
	// agent's output asked.
	Proof string `json:"proof,omitempty" jsonschema:"enum=run,enum=account,enum=claimed"`
	// Run is the key of the run that asks, as dags/checks/implement-0123456789abcdef-1.
	Run string `json:"run,omitempty" jsonschema:"maxLength=250"`
	// At is when it was asked.
	At Time `json:"at,omitzero"`
}

// BlockerTypes are the types of blockers.
func BlockerTypes() []string {
	return []string{"access", "dependency", "environment", "information", "plan", "other"}
}

// maxPlanContext bounds the context of a plan change, as JSON.
const maxPlanContext = 20_000

// Urgency is the priority that counts: that of a run is at most high.
func (s *PlanChangeSpec) Urgency() Priority {
	if s.Priority == "" || s.Run != "" && s.Priority == Critical {
		return High
	}
	return s.Priority
}

// PlanEdit is a change of the nodes of a DAG.
type PlanEdit struct {
	// DAG is the name of the DAG to change. Default: the target, or the only DAG of the session that is the target.
	DAG string `json:"dag,omitempty" jsonschema:"maxLength=63"`
	// Add are new nodes.
	Add []Node `json:"add,omitempty" jsonschema:"maxItems=1000"`
	// Modify has, by the name of a node, the fields that get another value; null removes one.
	Modify map[string]map[string]any `json:"modify,omitempty"`
	// Remove names nodes that go.
	Remove []string `json:"remove,omitempty" jsonschema:"maxItems=1000"`
	// Needs has, by the name of a node, all nodes that it is to need.
	Needs map[string][]string `json:"needs,omitempty"`
	// Text says more, in words.
	Text string `json:"text,omitempty" jsonschema:"maxLength=20000"`
}

// Shown is the edit as people see it, JSON in a line; "" for nil.
func (e *PlanEdit) Shown() string {
	if e == nil {
		return ""
	}
	return shownJSON(e)
}

// ShownContext is the context as people and architects see it, JSON in a line; "" for none.
func (s *PlanChangeSpec) ShownContext() string {
	if len(s.Context) == 0 {
		return ""
	}
	return shownJSON(s.Context)
}

func shownJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it came from JSON or YAML
	return strings.TrimSpace(b.String())
}

// Changes reports whether the edit changes a DAG; nil does not.
func (e *PlanEdit) Changes() bool {
	return e != nil && len(e.Add)+len(e.Modify)+len(e.Remove)+len(e.Needs) > 0
}

// Phases of a plan change.
const (
	PlanPending  = "Pending"  // waits for an answer
	PlanAccepted = "Accepted" // the file of the DAG is being changed
	PlanApplied  = "Applied"
	PlanRefused  = "Refused"
)

// PlanChangeStatus is the observed state of a plan change. Its phase is one of the Plan constants, or empty for a request that cannot be
// taken.
type PlanChangeStatus struct {
	Common
	// Created is when a run took the request.
	Created Time `json:"created,omitzero"`
	// Architect is the agent that is asked, and AnswerDAG the DAG in which it answers; empty where a person decides.
	Architect string `json:"architect,omitempty"`
	AnswerDAG string `json:"answerDAG,omitempty"`
	// Question is the prompt of the architect while it is asked: only a DAG with it answers.
	Question string `json:"question,omitempty"`
	// AskedAt is when the present try of a hand-off begins.
	AskedAt Time `json:"askedAt,omitzero"`
	// Proposal is the edit that the architect accepts and only a person may; nil for none.
	Proposal *PlanEdit `json:"proposal,omitempty"`
	// Rejected says why answers of the architect could not be applied, oldest first.
	Rejected []string `json:"rejected,omitempty"`
	// Answer is the decision; nil until there is one.
	Answer *PlanAnswer `json:"answer,omitempty"`
	// DAG is the DAG that is changed, Digest that of its spec with the change, and Changes what the change does, in words.
	DAG     string   `json:"dag,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Actions are the Action objects applied to the request, in the order of application.
	Actions []AppliedAction `json:"actions,omitempty"`
}

// PlanAnswer is the decision about a plan change.
type PlanAnswer struct {
	Accept bool `json:"accept"`
	// Reason says why; Instructions are for the node that escalated.
	Reason       string `json:"reason,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// Edit is what changes; nil for nothing.
	Edit *PlanEdit `json:"edit,omitempty"`
	// By is who decided, Proof how that is known: a Proof constant. Source is "action/NAME", or "run/KEY" of the architect.
	By     string `json:"by"`
	Proof  string `json:"proof,omitempty"`
	Source string `json:"source"`
	At     Time   `json:"at"`
}

// Open reports whether a plan change has no decision that took effect yet.
func (s *PlanChangeStatus) Open() bool { return s.Phase == PlanPending || s.Phase == PlanAccepted }

func (s *PlanChangeStatus) appliedActions() []AppliedAction { return s.Actions }

// TargetRef returns the target: a DAG or a session. The error names the expected form.
func (s *PlanChangeSpec) TargetRef() (Ref, error) {
	return Kinds{DAGKind, SessionKind}.ParseRef(s.Target)
}

// Default fills nothing in. It takes out secrets and private text, which statuses and prompts must not repeat.
func (s *PlanChangeSpec) Default() {
	withoutSecrets(&s.By, &s.Reason)
	for i := range s.Tried {
		withoutSecrets(&s.Tried[i])
	}
	if s.Suggestions != nil {
		withoutSecrets(&s.Suggestions.Text)
	}
	if s.Context != nil {
		s.Context, _ = valueWithoutSecrets(s.Context).(map[string]any)
	}
}

// valueWithoutSecrets is a value of JSON without secrets and private text, in names as well.
func valueWithoutSecrets(v any) any {
	switch v := v.(type) {
	case string:
		withoutSecrets(&v)
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = valueWithoutSecrets(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, of := range v {
			withoutSecrets(&name)
			out[name] = valueWithoutSecrets(of)
		}
		return out
	}
	return v
}

// Check reports the problems of a plan change: a target that is none, names that no node can have, an escalation that is not about a DAG,
// and suggestions that the change does not allow.
func (s *PlanChangeSpec) Check(r *Report) {
	to, err := s.TargetRef()
	switch {
	case err != nil:
		r.At("target").Errorf("bad-target", "%v", err)
	case s.Node != "" && to.Kind != DAGKind.Name:
		r.At("node").Errorf("conflict", "only a DAG has nodes, and the target is %s", to).also("the target", "target")
	case s.Change == ChangeHandoff && (s.Node == "" || s.Run == "" || s.Proof != "" || s.Suggestions != nil || len(s.Tried) > 0 ||
		s.BlockerType != "" || s.Priority != "" || len(s.Context) > 0):
		r.At("change").Errorf("conflict", "only reconcile asks for a hand-off, when the work of a run on a node is handed over").
			suggest("use extend, modify, replace or fix")
	case s.Node == "" && s.BlockerType != "":
		r.At("blockerType").Errorf("missing", "the type of a blocker is about a node that is blocked").suggest("add node")
	case s.Node == "" && len(s.Tried) > 0:
		r.At("tried").Errorf("missing", "what was tried is about a node that is blocked").suggest("add node")
	}
	checkFilled(r.At("reason"), s.Reason)
	checkLine(r.At("by"), s.By)
	if s.BlockerType != "" && !slices.Contains(BlockerTypes(), s.BlockerType) {
		r.At("blockerType").Errorf("bad-value", "%q is no type of a blocker: it is one of %s", s.BlockerType, strings.Join(BlockerTypes(), ", "))
	}
	if s.Priority != "" && !slices.Contains(Priorities(), s.Priority) {
		r.At("priority").Errorf("bad-value", "%q is no priority: it is one of critical, high, normal, low, background", s.Priority)
	}
	if n := utf8.RuneCountInString(s.ShownContext()); n > maxPlanContext {
		r.At("context").Errorf("too-long", "it has %d characters, and at most %d are allowed", n, maxPlanContext)
	}
	checkRunKey(r.At("run"), s.Run)
	if s.Node != "" {
		checkNodeNames(r, []string{s.Node}, "node")
	}
	checkNodeNames(r, s.Blocked, "blocked")
	checkNodeNames(r, s.Failed, "failed")
	for i, text := range s.Tried {
		checkFilled(r.At("tried", i), text)
	}
	s.Suggestions.check(r.At("suggestions"), s.Change)
}

// checkNodeNames reports names that no node can have.
func checkNodeNames(r *Report, names []string, field string) {
	for i, name := range names {
		if isNodeName(name) {
			continue
		}
		at := r.At(field, i)
		if field == "node" {
			at = r.At(field)
		}
		at.Errorf("bad-name", "%q is not the name of a node", name)
	}
}

// check reports an edit that a change does not allow. What depends on the DAG is found when the edit is applied.
func (e *PlanEdit) check(at Spot, change string) {
	if e == nil {
		return
	}
	if e.DAG != "" {
		checkRef(at.At("dag"), e.DAG)
	}
	for i := range e.Add {
		if name := e.Add[i].Name; !isNodeName(name) {
			at.At("add", i, "name").Errorf("bad-name", "%q is not the name of a node", name)
		} else if slices.Contains(e.Remove, name) {
			at.At("add", i, "name").Errorf("conflict", "node %q is added and removed", name).suggest("modify changes a node")
		}
	}
	if change == ChangeExtend && len(e.Modify)+len(e.Remove) > 0 {
		at.Errorf("conflict", "extend adds nodes, and changes or removes none").suggest("write modify as the change")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Modify)) {
		if to, ok := e.Modify[name]["name"]; ok && to != name {
			at.At("modify", name).Errorf("conflict", "a node keeps its name").suggest("remove it, and add one with the other name")
		}
	}
}

// References returns a hard reference to the target, and soft ones to a DAG that the suggestions name and to that of the run that asks.
func (s *PlanChangeSpec) References() []Reference {
	to, err := s.TargetRef()
	if err != nil {
		return nil
	}
	refs := []Reference{{Field: []any{"target"}, To: to, Hard: true}}
	if e := s.Suggestions; e != nil && e.DAG != "" && e.DAG != to.Name {
		refs = append(refs, Reference{Field: []any{"suggestions", "dag"}, To: DAGKind.Ref(e.DAG)})
	}
	if dag, _, ok := SplitRunKey(s.Run); ok && dag != to.Name {
		refs = append(refs, Reference{Field: []any{"run"}, To: DAGKind.Ref(dag)})
	}
	return refs
}

// Said describes the request in a line.
func (s *PlanChangeSpec) Said() string {
	what := s.Change + " " + s.Target
	switch {
	case s.Change == ChangeHandoff:
		what = "hand-off of " + s.Target + " " + s.Node
	case s.Node != "":
		what = "blocker of " + s.Target + " " + s.Node
		if s.BlockerType != "" {
			what = "blocker (" + s.BlockerType + ") of " + s.Target + " " + s.Node
		}
	}
	return what + ": " + strings.Join(strings.Fields(s.Reason), " ")
}

package schemas

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/condition"
)

// Nodes returns the nodes that the steps become in the DAG of a run.
func (s *WorkflowSpec) Nodes() []Node {
	out := make([]Node, len(s.Steps))
	for i := range s.Steps {
		out[i] = s.Steps[i].node(s.scope(&s.Steps[i]))
	}
	return out
}

// asDAG is the DAG of a run, as far as its workflow decides it. s may be nil.
func (s *WorkflowSpec) asDAG() *DAGSpec {
	if s == nil {
		return new(DAGSpec)
	}
	return &DAGSpec{Session: "x", Workflow: &WorkflowRun{Name: "x"}, Params: s.Params, Nodes: s.Nodes()}
}

// scope is the names that the expressions of a step may use.
func (s *WorkflowSpec) scope(st *Step) condition.Scope {
	return condition.Scope{Needs: st.Needs, Params: slices.Sorted(maps.Keys(s.Params))}
}

func (st *Step) node(names condition.Scope) Node {
	n := Node{Name: st.ID, Description: st.Title, Agent: st.Agent, Prompt: st.prompt(), Needs: st.Needs, When: st.Condition,
		Optional: st.Optional, Clarify: st.clarify(), Approve: st.Approve}
	if st.Output != "" {
		n.Outputs.Files, n.Outputs.Keep = []string{st.Output}, true // a run is often begun in one clone and ended in another
	}
	if st.StatusOnStart+st.StatusOnComplete != "" {
		n.IssueStatus = &IssueStatus{OnStart: st.StatusOnStart, OnComplete: st.StatusOnComplete}
	}
	until := st.until(names)
	if st.CompletionCriteria != "" && until == "" {
		n.Acceptance = []string{st.CompletionCriteria}
	}
	if st.Iterate {
		n.Repeat = &Repeat{Until: until, From: st.IterateFrom, Max: min(st.MaxIterations, maxRounds)}
		if until == "" {
			n.Repeat.Until, n.Outputs.Schema = "result.complete == true", st.completeSchema()
		}
	}
	return n
}

// maxRounds is the most rounds that a node can repeat.
const maxRounds = 100

// completeSchema is the form of the result of a step that says itself whether its criteria hold.
func (st *Step) completeSchema() json.RawMessage {
	about := "whether the task is complete"
	if st.CompletionCriteria != "" {
		about = "whether this holds: " + st.CompletionCriteria
	}
	raw, _ := json.Marshal(map[string]any{"type": "object", "required": []string{"complete"}, // a map of strings cannot fail
		"properties": map[string]any{"complete": map[string]any{"type": "boolean", "description": about}}})
	return raw
}

// clarify is the scope of the questions of a step; nil for a step that says nothing about it.
func (st *Step) clarify() *Clarify {
	c := &Clarify{Agents: st.CanClarify, MaxRounds: st.ClarifyMaxRounds, SLAMinutes: st.ClarifySLAMinutes}
	if allowed := st.ClarifyBlockingAllowed; allowed != nil && !*allowed {
		c.BlockingAllowed = allowed
	}
	if len(c.Agents) == 0 && c.MaxRounds == 0 && c.SLAMinutes == nil && c.BlockingAllowed == nil {
		return nil
	}
	return c
}

// prompt is what the agent of a step is told: its prompt, or its title and output, and the template of the output.
func (st *Step) prompt() string {
	text := st.Prompt
	if text == "" {
		text = strings.ReplaceAll(cmp.Or(st.Title, st.ID), "{{", `{{ "{{" }}`) + "."
		if st.Output != "" {
			text += " Write the result to " + st.Output + "."
		}
	}
	if st.Template != "" {
		text = strings.TrimRight(text, "\n") + "\n\nThe output follows the template in the file " + st.Template + "."
	}
	return text
}

// until is the expression over the result of a step that ends its iteration; "" for criteria that are text, which the agent judges.
func (st *Step) until(names condition.Scope) string {
	if st.CompletionCriteria == "" {
		return "" // to compile nothing takes as long as to compile something
	}
	names.Result = true
	if _, err := condition.CompileIn(st.CompletionCriteria, names); err != nil {
		return ""
	}
	return st.CompletionCriteria
}

// checkStart warns of what keeps the workflow from starting: that the DAG of its run would not be valid.
func (s *WorkflowSpec) checkStart(r *Report) {
	var found Report
	dag := s.asDAG()
	dag.Default()
	dag.Check(&found)
	for _, f := range found.Findings() {
		switch {
		case f.Severity == Error && len(f.Field) > 1 && f.Field[0] == "params":
			r.At(f.Field...).Errorf(f.Code, "%s", f.Message)
		case f.Severity == Error && len(f.Field) > 2 && f.Field[0] == "nodes":
			at := r.At("steps", f.Field[1])
			if field := stepFields[f.Field[2]]; field != "" {
				at = at.At(field)
			}
			w := at.warnf("cannot-start", "the workflow cannot start: %s", f.Message)
			w.Suggestion = f.Suggestion
		}
	}
}

// stepFields are the fields of a step by those of a node that they become.
var stepFields = map[any]string{"name": "id", "when": "condition", "prompt": "prompt", "outputs": "output", "repeat": "completion_criteria",
	"approve": "approve", "issueStatus": "status_on_start", "clarify": "can_clarify"}

package planchanges

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// longestQuestion bounds the prompt of an architect, in characters: that of a node has at most 100,000.
const longestQuestion = 99_000

// answerNode is the node of the DAG in which an architect answers.
const answerNode = "answer"

// Command is how a person answers a plan change.
func Command(ref schemas.Ref) string {
	return fmt.Sprintf("reconcile approve %s [--answer TEXT|-f FILE], or reconcile deny %[1]s --reason TEXT", ref)
}

// Session is the session of the target; "" for a template.
func Session(t *state.Tree, spec *schemas.PlanChangeSpec) string {
	to, _ := spec.TargetRef()
	if to.Kind == schemas.SessionKind.Name {
		return to.Name
	}
	if dag := state.SpecOf[*schemas.DAGSpec](t.Entry(to)); dag != nil {
		return dag.Session
	}
	return ""
}

// answerName is the name of the DAG of an answer, the first or a later one.
func answerName(change string, n int) string {
	const longest = 63
	suffix := "-answer"
	if n > 1 {
		suffix += "-" + strconv.Itoa(n)
	}
	if len(change)+len(suffix) > longest {
		change = strings.TrimRight(clarifications.NameFor(change[:longest-len(suffix)-7], change), "-._")
	}
	return change + suffix
}

// AnswerDAG is the DAG in which an architect answers a plan change that waits for it; nil for none.
func AnswerDAG(t *state.Tree, e *state.Entry) (name string, dag *schemas.DAGSpec) {
	spec, st := Spec(e), Status(e)
	if spec == nil || st.Phase != schemas.PlanPending || st.AnswerDAG == "" {
		return "", nil
	}
	to, _ := spec.TargetRef()
	issue := 0
	if of := state.SpecOf[*schemas.DAGSpec](t.Entry(to)); of != nil {
		issue = of.Issue
	}
	return st.AnswerDAG, &schemas.DAGSpec{Session: Session(t, spec), Issue: issue, Description: "Answer " + e.Ref.String(), Answers: e.Name,
		Nodes: []schemas.Node{nodeOf(spec, st)}}
}

// nodeOf is the node in which the architect answers.
func nodeOf(spec *schemas.PlanChangeSpec, st *schemas.PlanChangeStatus) schemas.Node {
	n := schemas.Node{Name: answerNode, Agent: st.Architect, Priority: spec.Urgency(), Prompt: st.Question, Retry: &schemas.Retry{Limit: 1}}
	if spec.Change == schemas.ChangeHandoff {
		limit := schemas.Duration(handoffTry)
		n.Retry.Limit, n.Timeout = 0, &limit
	}
	return n
}

// isQuestion reports whether a DAG asks the architect the question on record, and nothing else.
func (f *changeFold) isQuestion(dag *schemas.DAGSpec) bool {
	if dag == nil {
		return false
	}
	want := schemas.DAGSpec{Answers: f.Name, Session: dag.Session, Issue: dag.Issue, Description: dag.Description, Nodes: []schemas.Node{nodeOf(f.spec, f.st)}}
	want.Default()
	return reflect.DeepEqual(dag, &want)
}

// question is what the architect is asked in a DAG. After a kill the DAG may be on disk, and the question not on record: then it is that of
// the DAG, which says how the nodes were.
func (f *changeFold) question(dag string) string {
	p := f.request()
	asked := state.SpecOf[*schemas.DAGSpec](f.Tree.Entry(schemas.DAGKind.Ref(dag)))
	if asked != nil && len(asked.Nodes) == 1 && p.IsPrompt(asked.Nodes[0].Prompt) {
		return asked.Nodes[0].Prompt
	}
	return shorten.Text(p.Prompt(), longestQuestion)
}

// request is the content of the architect's prompt: the request, and the state of its DAGs.
func (f *changeFold) request() *agentio.PlanChange {
	p := &agentio.PlanChange{Ref: f.Ref.String(), Spec: f.spec}
	if to, _ := f.spec.TargetRef(); to.Kind == schemas.DAGKind.Name {
		p.Plans = append(p.Plans, planOf(f.Tree.Entry(to)))
	} else {
		for _, dag := range dagsIn(f.Tree, to) {
			p.Plans = append(p.Plans, planOf(dag))
		}
	}
	for _, c := range f.Tree.Checkpoints() {
		if f.spec.Change == schemas.ChangeHandoff && c.Hands(&schemas.Handoff{Run: f.spec.Run, Reason: f.spec.Reason, At: f.spec.At}) {
			p.Handoff = &agentio.Handoff{Pipeline: c.Handoff.HandoffIndex, Reason: c.Handoff.HandoffReason, State: &c.Handoff.TaskState}
		}
	}
	if n := len(f.st.Rejected); n > 0 {
		p.Rejected = f.st.Rejected[n-1]
	}
	return p
}

func planOf(e *state.Entry) agentio.Plan {
	p := agentio.Plan{DAG: e.Name}
	spec, st := schemas.SpecAs[*schemas.DAGSpec](e.Object.Declared()), state.StatusOf[schemas.DAGStatus](e)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		p.Nodes = append(p.Nodes, agentio.PlanNode{Node: n, Status: st.Nodes.Of(n.Name)})
	}
	return p
}

// Architect is the agent that answers a plan change: one with the role of an architect that is a program, by name, except
// the requester. person is an architect who is a person; both are empty without any.
func Architect(t *state.Tree, by string) (program, person string) {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		spec := state.SpecOf[*schemas.AgentSpec](e)
		switch {
		case spec == nil || spec.Role != schemas.RoleArchitect || e.Name == by:
		case agents.IsPerson(t, e.Name):
			if person == "" {
				person = e.Name
			}
		case program == "":
			program = e.Name
		}
	}
	return program, person
}

package planchanges

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// mostAnswers bounds how many answers of an architect cannot be applied before a person decides.
const mostAnswers = 3

// answerNode is the node of the DAG in which an architect answers.
const answerNode = "answer"

// ask has an architect answer, and takes the answer.
func (f *fold) ask() {
	f.waits = "waits for a person: " + f.command()
	program, person := architect(f.Tree, f.spec.By)
	if f.st.Architect = person; program == "" || Session(f.Tree, f.spec) == "" || f.answersItself() {
		return
	}
	f.st.Architect = program
	for len(f.st.Rejected) < mostAnswers {
		f.st.AnswerDAG = answerName(f.Name, len(f.st.Rejected)+1)
		err := f.hear()
		if errors.As(err, new(*beyondError)) {
			f.waits = fmt.Sprintf("agent/%s accepts it, and only a person can: %v; %s", program, err, f.command())
			return
		} else if err == nil {
			return
		}
		f.st.Rejected = append(slices.Clip(f.st.Rejected), err.Error())
	}
	f.st.AnswerDAG, f.working = "", false
	f.waits = fmt.Sprintf("the answers of agent/%s cannot be applied: %s; %s", program, f.st.Rejected[len(f.st.Rejected)-1], f.command())
}

// hear takes the answer of the architect, if it is there. The error says why the answer cannot be applied.
func (f *fold) hear() error {
	e := f.Tree.Entry(schemas.DAGKind.Ref(f.st.AnswerDAG))
	where := schemas.DAGKind.Ref(f.st.AnswerDAG).String()
	f.working, f.waits = true, fmt.Sprintf("agent/%s answers it in %s", f.st.Architect, where)
	dag := state.SpecOf[*schemas.DAGSpec](e)
	if e == nil || e.Gone() {
		return nil
	}
	if dag == nil || dag.Answers != f.Name {
		f.working, f.waits = false, fmt.Sprintf("%s is in the way of the answer of agent/%s; %s", where, f.st.Architect, f.command())
		return nil
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	if st == nil {
		return nil
	}
	switch n := st.Nodes[answerNode]; n.State {
	case schemas.NodeSucceeded:
		return f.take(e, dag.Nodes[0].Agent, n)
	case schemas.NodeFailed, schemas.NodeCancelled, schemas.NodeSkipped:
		f.working, f.waits = false, fmt.Sprintf("agent/%s did not answer it (%s): %s; or reconcile retry %s", f.st.Architect, n.Reason, f.command(), where)
	case schemas.NodeBlocked:
		f.waits += ", which waits: " + n.Message
	}
	return nil
}

// take takes the result of the architect's node.
func (f *fold) take(e *state.Entry, agent string, n schemas.NodeStatus) error {
	given, err := schemas.ReadPlanAnswer(string(n.Result))
	if err == nil && given.Accept == nil {
		err = errors.New(`the answer is no JSON object with "accept"`)
	}
	if err != nil {
		return err
	}
	answer := &schemas.PlanAnswer{Accept: *given.Accept, Reason: shorten.Text(given.Reason, agentio.AnswerLimit),
		Instructions: shorten.Text(given.Instructions, agentio.AnswerLimit), Edit: given.Edit, By: agent, Proof: schemas.ProofRun, Source: e.Ref.String(), At: n.FinishedAt}
	for _, run := range e.Runs() {
		if run.Node == answerNode && run.NodeKey == n.Key && run.Outcome == schemas.OutcomeSucceeded {
			answer.Source = "run/" + run.Key
		}
	}
	if err = f.accept(answer, agent); errors.As(err, new(*beyondError)) {
		f.working, f.st.Proposal = false, answer.Edit
	}
	return err
}

// command is how a person answers.
func (f *fold) command() string { return Command(f.Ref) }

// Command is how a person answers a plan change.
func Command(ref schemas.Ref) string {
	return fmt.Sprintf("reconcile approve %s [--answer TEXT|-f FILE], or reconcile deny %[1]s --reason TEXT", ref)
}

// answersItself reports whether the plan change is about a DAG that answers one: only people answer that.
func (f *fold) answersItself() bool {
	to, _ := f.spec.TargetRef()
	dag := state.SpecOf[*schemas.DAGSpec](f.Tree.Entry(to))
	return dag != nil && dag.Answers != ""
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
		Nodes: []schemas.Node{{Name: answerNode, Agent: st.Architect, Priority: schemas.High, Prompt: prompt(t, e, spec, st),
			Retry: &schemas.Retry{Limit: 1}}}}
}

// prompt is what the architect is told: the request, how the DAG is, and what an answer is.
func prompt(t *state.Tree, e *state.Entry, spec *schemas.PlanChangeSpec, st *schemas.PlanChangeStatus) string {
	p := agentio.PlanChange{Ref: e.Ref.String(), Spec: spec}
	if to, _ := spec.TargetRef(); to.Kind == schemas.DAGKind.Name {
		p.Plans = append(p.Plans, planOf(t.Entry(to)))
	} else {
		for _, dag := range dagsIn(t, to) {
			p.Plans = append(p.Plans, planOf(dag))
		}
	}
	if n := len(st.Rejected); n > 0 {
		p.Rejected = st.Rejected[n-1]
	}
	return p.Prompt()
}

func planOf(e *state.Entry) agentio.Plan {
	p := agentio.Plan{DAG: e.Name}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object.Declared())
	st, _ := e.Status().(*schemas.DAGStatus)
	for i := range spec.Nodes {
		n := agentio.PlanNode{Node: &spec.Nodes[i]}
		if st != nil {
			n.Status = st.Nodes[n.Node.Name]
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

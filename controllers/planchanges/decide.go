package planchanges

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// changeFold is the state of a decision about one plan change.
type changeFold struct {
	settle.In
	spec    *schemas.PlanChangeSpec
	st      *schemas.PlanChangeStatus
	history settle.History
	waits   string // what it waits for, where the phase does not say it
	working bool   // an agent is at it
}

// decide follows a plan change from the request through the answer to the change of the DAG.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	st := *Status(in.Entry)
	st.Common = settle.Common(in.Status())
	var j settle.Judgement
	digest := st.ObservedDigest
	switch {
	case in.Broken():
		j = settle.JudgeBroken(in, st.Phase)
	case st.Phase != "" && st.ObservedDigest != in.Object.Digest:
		j = settle.JudgeImmutable(st.Phase, "a plan change cannot be edited once it was taken; put the text back, and write a new one")
	default:
		f := &changeFold{In: in, spec: Spec(in.Entry), st: &st, history: settle.History{Old: st.History}}
		f.run()
		j, digest = f.judge(), in.Object.Digest
		st.History = f.history.Entries()
	}
	if st.History == nil {
		st.History = []schemas.HistoryEntry{}
	}
	j.Settle(&st.Common, digest, in.Now)
	return settle.Out{Status: &st}
}

// run finds the phase.
func (f *changeFold) run() {
	if f.st.Phase == "" {
		if f.waits = f.unknownNode(); f.waits != "" {
			return
		}
		if err := CheckSuggestions(f.Tree, f.spec); err != nil && f.spec.Proof != schemas.ProofRun { // an agent is answered by an architect
			f.waits = "its suggestions cannot be applied: " + err.Error()
			return
		}
		f.st.Phase, f.st.Created = schemas.PlanPending, f.spec.At
		if f.st.Created.IsZero() {
			f.st.Created = schemas.NewTime(f.Now)
		}
		f.history.Add(f.st.Created, "Asked", cmp.Or(schemas.Acting(f.spec.By, f.spec.Proof), "a person")+" asked: "+f.spec.Said())
	}
	f.st.Actions = actions.Kept(f.Tree, f.st.Actions)
	for _, a := range actions.Unapplied(f.Tree, f.Entry, f.st.Actions) {
		done := a.Record(schemas.NewTime(f.Now))
		if !a.Spent {
			if done.Refused = a.Distrusted(); done.Refused == "" {
				f.act(a, &done)
			}
			f.history.Add(done.At, settle.ReasonApplied, actions.Message(done, f.Ref))
		}
		f.st.Actions = append(f.st.Actions[:len(f.st.Actions):len(f.st.Actions)], done)
	}
	if f.st.Phase == schemas.PlanPending {
		f.ask()
	}
	if f.st.Phase == schemas.PlanAccepted {
		f.change()
	}
}

// unknownNode says which node the request names and the DAG does not have; "" for none.
func (f *changeFold) unknownNode() string {
	to, _ := f.spec.TargetRef()
	e := f.Tree.Entry(to)
	dag := state.SpecOf[*schemas.DAGSpec](e)
	if to.Kind != schemas.DAGKind.Name || dag == nil {
		return ""
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	for _, name := range slices.Concat([]string{f.spec.Node}, f.spec.Blocked, f.spec.Failed) {
		known := name == "" || dag.Node(name) != nil
		if !known && st != nil {
			known = st.Nodes.Find(name) != nil
		}
		if !known {
			return fmt.Sprintf("%s has no node %q", to, name)
		}
	}
	return ""
}

// CheckSuggestions returns why the suggestions of a request cannot be applied as they are.
func CheckSuggestions(t *state.Tree, spec *schemas.PlanChangeSpec) error {
	if !spec.Suggestions.Changes() {
		return nil
	}
	dag, err := dagOf(t, spec, spec.Suggestions)
	if err == nil {
		_, err = Apply(t, dag, spec.Change, spec.Suggestions, false)
	}
	return err
}

// act applies the answer of a person. done is the record of it.
func (f *changeFold) act(a actions.Pending, done *schemas.AppliedAction) {
	if f.st.Phase != schemas.PlanPending {
		done.Moot = true
		return
	}
	answer := &schemas.PlanAnswer{By: a.Spec.By, Proof: a.Spec.Proof, Source: a.Entry.Ref.String(), At: done.At, Reason: a.Spec.Reason}
	if a.Spec.Verb == schemas.VerbDeny {
		f.refuse(answer)
		return
	}
	given, err := schemas.ReadPlanAnswer(a.Spec.Answer)
	if err == nil {
		answer.Accept, answer.Instructions, answer.Edit = given.Accept == nil || *given.Accept, given.Instructions, given.Edit
		answer.Reason = cmp.Or(answer.Reason, given.Reason)
		if answer.Edit == nil {
			answer.Edit = f.st.Proposal
		}
		err = f.accept(answer, "")
	}
	if err != nil {
		done.Refused = err.Error()
	}
}

// refuse ends the plan change without a change.
func (f *changeFold) refuse(a *schemas.PlanAnswer) {
	f.end(a, schemas.PlanRefused)
	f.history.Add(a.At, settle.ReasonRefused, schemas.Acting(a.By, a.Proof)+" refused it"+because(a.Reason))
}

// end takes a decision, and ends the question.
func (f *changeFold) end(a *schemas.PlanAnswer, phase string) {
	f.st.Answer, f.st.Phase, f.st.Proposal, f.st.Question = a, phase, nil, ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.Join(strings.Fields(reason), " ")
}

// beyondError says that only a person can accept an edit.
type beyondError struct{ what string }

func (e *beyondError) Error() string {
	return e.what + ", which commands.allow of the settings does not allow"
}

// accept takes an answer. agent is the agent that gives it, "" for a person. The error says why it cannot be applied.
func (f *changeFold) accept(a *schemas.PlanAnswer, agent string) error {
	if !a.Accept {
		f.refuse(a)
		return nil
	}
	if a.Edit == nil && f.spec.Suggestions.Changes() {
		a.Edit = f.spec.Suggestions
	}
	phase := schemas.PlanApplied
	switch {
	case a.Edit.Changes():
		if err := f.plan(a, agent); err != nil {
			return err
		}
		phase = schemas.PlanAccepted
	case f.spec.Node == "" && a.Instructions == "":
		return errors.New("it changes nothing: there are no suggestions, and the answer has no edit")
	}
	f.end(a, phase)
	f.history.Add(a.At, settle.ReasonAnswered, schemas.Acting(a.By, a.Proof)+" accepted it"+because(a.Reason))
	return nil
}

// plan finds what an answer changes.
func (f *changeFold) plan(a *schemas.PlanAnswer, agent string) error {
	dag, err := dagOf(f.Tree, f.spec, a.Edit)
	if err != nil {
		return err
	}
	edited, err := Apply(f.Tree, dag, f.spec.Change, a.Edit, false)
	if err != nil {
		return err
	}
	if agent != "" {
		if what := beyond(f.Tree, dag, edited.Object); what != "" {
			return &beyondError{what}
		}
	}
	f.st.DAG, f.st.Digest, f.st.Changes = dag.Ref.String(), edited.Object.Digest, edited.Changes
	return nil
}

// ask has an architect answer, and takes the answer.
func (f *changeFold) ask() {
	f.waits = "waits for a person: " + f.command()
	program, person := architect(f.Tree, f.spec.By)
	if f.st.Architect = person; program == "" || Session(f.Tree, f.spec) == "" || f.answersItself() {
		return
	}
	f.st.Architect = program
	for len(f.st.Rejected) < mostAnswers {
		name := answerName(f.Name, len(f.st.Rejected)+1)
		// The DAG that changes may be decided after this, so the question is made again until it is in a file.
		if f.st.AnswerDAG != name || f.st.Question == "" || f.Tree.Entry(schemas.DAGKind.Ref(name)) == nil {
			f.st.AnswerDAG, f.st.Question = name, f.question(name)
		}
		err := f.hear()
		if errors.As(err, new(*beyondError)) {
			f.waits = fmt.Sprintf("agent/%s accepts it, and only a person can: %v; %s", program, err, f.command())
			return
		} else if err == nil {
			return
		}
		f.st.Rejected = append(slices.Clip(f.st.Rejected), err.Error())
	}
	f.st.AnswerDAG, f.st.Question, f.working = "", "", false
	f.waits = fmt.Sprintf("the answers of agent/%s cannot be applied: %s; %s", program, f.st.Rejected[len(f.st.Rejected)-1], f.command())
}

// hear takes the answer of the architect, if it is there. The error says why the answer cannot be applied.
func (f *changeFold) hear() error {
	e := f.Tree.Entry(schemas.DAGKind.Ref(f.st.AnswerDAG))
	where := schemas.DAGKind.Ref(f.st.AnswerDAG).String()
	f.working, f.waits = true, fmt.Sprintf("agent/%s answers it in %s", f.st.Architect, where)
	dag := state.SpecOf[*schemas.DAGSpec](e)
	if e == nil || e.Gone() {
		return nil
	}
	if !f.isQuestion(dag) {
		f.working, f.waits = false, fmt.Sprintf("%s is in the way of the answer of agent/%s; %s", where, f.st.Architect, f.command())
		return nil
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	if st == nil {
		return nil
	}
	switch n := st.Nodes.Of(answerNode); n.State {
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
func (f *changeFold) take(e *state.Entry, agent string, n schemas.NodeStatus) error {
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
func (f *changeFold) command() string { return Command(f.Ref) }

// answersItself reports whether the plan change is about a DAG that answers one: only people answer that.
func (f *changeFold) answersItself() bool {
	to, _ := f.spec.TargetRef()
	dag := state.SpecOf[*schemas.DAGSpec](f.Tree.Entry(to))
	return dag != nil && dag.Answers != ""
}

// change finds whether the file of the DAG has the edit. It is applied again to a DAG that others changed meanwhile.
func (f *changeFold) change() {
	dag, edited, err := Pending(f.Tree, f.Entry, f.st)
	switch {
	case err != nil:
		f.st.Phase = schemas.PlanRefused
		f.st.Rejected = append(slices.Clip(f.st.Rejected), "it cannot be applied any more: "+err.Error())
	case dag.Object.Declared().Digest == edited.Object.Digest:
		f.st.Phase, f.st.Digest = schemas.PlanApplied, edited.Object.Digest
	default:
		f.st.Digest = edited.Object.Digest
	}
}

// Pending returns the DAG that an accepted plan change changes, and the DAG as it is to be.
func Pending(t *state.Tree, e *state.Entry, st *schemas.PlanChangeStatus) (*state.Entry, *Edited, error) {
	spec := Spec(e)
	if spec == nil || st.Answer == nil || st.Answer.Edit == nil {
		return nil, nil, errors.New("its file, or its status, is broken")
	}
	dag, err := dagOf(t, spec, st.Answer.Edit)
	if err != nil {
		return nil, nil, err
	}
	edited, err := Apply(t, dag, spec.Change, st.Answer.Edit, true)
	return dag, edited, err
}

// judge finds the conditions.
func (f *changeFold) judge() settle.Judgement {
	st := f.st
	j := settle.Judgement{Phase: st.Phase, Class: settle.ClassWaiting, Reason: settle.ReasonWaitsForPerson}
	if a := st.Answer; a != nil {
		j.Since = a.At.Time
	}
	switch st.Phase {
	case "":
		j.Class, j.Reason, j.Message = settle.ClassFailed, settle.ReasonRefused, f.waits
	case schemas.PlanPending:
		if j.Message = f.waits; f.working {
			j.Class, j.Reason = settle.ClassWorking, settle.ReasonWaitsForAnswer
		}
	case schemas.PlanAccepted:
		j.Class, j.Reason, j.Message = settle.ClassWorking, settle.ReasonAnswered, "the file of "+st.DAG+" is being changed"
	case schemas.PlanApplied:
		j.Class, j.Reason, j.Message = settle.ClassReady, settle.ReasonApplied, f.applied()
	case schemas.PlanRefused:
		j.Class, j.Reason = settle.ClassReady, settle.ReasonRefused
		if j.Message = "refused by " + schemas.Acting(st.Answer.By, st.Answer.Proof) + because(st.Answer.Reason); st.Answer.Accept {
			j.Message = st.Rejected[len(st.Rejected)-1]
		}
	}
	return j
}

// applied says what an answer did.
func (f *changeFold) applied() string {
	a := f.st.Answer
	text := "answered by " + schemas.Acting(a.By, a.Proof) + because(cmp.Or(a.Reason, a.Instructions))
	if len(f.st.Changes) > 0 {
		text = f.st.DAG + ", accepted by " + schemas.Acting(a.By, a.Proof) + ": " + schemas.Shorten(f.st.Changes, 5)
	}
	to, _ := f.spec.TargetRef()
	if dag, ok := f.Tree.Entry(to).Status().(*schemas.DAGStatus); ok && dag.Nodes.Of(f.spec.Node).State == schemas.NodeFailed {
		text += fmt.Sprintf("; %s has failed: reconcile retry %s %[1]s lets it run again, with the answer", f.spec.Node, to)
	}
	return text
}

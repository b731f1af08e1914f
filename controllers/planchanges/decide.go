package planchanges

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
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
	again   time.Time
}

// decide follows a plan change from the request through the answer to the change of the DAG.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	st := *Status(in.Entry)
	st.Common = settle.Common(in.Status())
	var j settle.Judgement
	out := settle.Out{Status: &st}
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
		out.Again, out.Await = f.again, !f.again.IsZero()
	}
	if st.History == nil {
		st.History = []schemas.HistoryEntry{}
	}
	j.Settle(&st.Common, digest, in.Now)
	return out
}

// run finds the phase.
func (f *changeFold) run() {
	if f.st.Phase == "" {
		if f.waits = f.unknownNode(); f.waits != "" {
			return
		}
		if f.spec.Change == schemas.ChangeHandoff && f.handoff() == nil {
			f.waits = fmt.Sprintf("%s %s asks for no such hand-off: reconcile itself writes this request", f.spec.Target, f.spec.Node)
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
	if f.st.Phase == schemas.PlanPending && f.spec.Change == schemas.ChangeHandoff {
		f.askHandoff()
	} else if f.st.Phase == schemas.PlanPending {
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
		_, err = apply(t, dag, spec.Change, spec.Suggestions, false)
	}
	return err
}

// act applies the answer of a person. done is the record of it.
func (f *changeFold) act(a actions.Pending, done *schemas.AppliedAction) {
	if f.st.Phase != schemas.PlanPending {
		done.Moot = true
		return
	}
	if id := a.Identity(f.World); agents.Acts(f.Tree, id) {
		done.Refused = "only people do that, and " + id.Who + " is an agent"
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
	edited, err := apply(f.Tree, dag, f.spec.Change, a.Edit, false)
	if err == nil {
		err = f.keepsHandedOver(dag, edited)
	}
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
	program, person := Architect(f.Tree, f.spec.By)
	if f.st.Architect = person; program == "" || Session(f.Tree, f.spec) == "" || f.answersItself() {
		return
	}
	f.st.Architect = program
	for len(f.st.Rejected) < mostAnswers {
		f.putQuestion(len(f.st.Rejected) + 1)
		err := f.hear()
		if errors.As(err, new(*beyondError)) {
			f.waits = fmt.Sprintf("agent/%s accepts it, and only a person can: %v; %s", program, err, f.command())
			return
		} else if err == nil {
			return
		}
		f.reject(err.Error())
	}
	f.st.AnswerDAG, f.st.Question, f.working = "", "", false
	f.waits = fmt.Sprintf("the answers of agent/%s cannot be applied: %s; %s", program, f.st.Rejected[len(f.st.Rejected)-1], f.command())
}

// reject keeps why an answer cannot be applied. That may quote the answer.
func (f *changeFold) reject(why string) {
	f.st.Rejected = append(slices.Clip(f.st.Rejected), shorten.Text(why, agentio.AnswerLimit))
}

// putQuestion names the DAG of try n, and what is asked there. The DAG that changes may be decided after this, so the question is made
// again until it is in a file.
func (f *changeFold) putQuestion(n int) {
	if name := answerName(f.Name, n); f.st.AnswerDAG != name || f.st.Question == "" || f.Tree.Entry(schemas.DAGKind.Ref(name)) == nil {
		f.st.AnswerDAG, f.st.Question = name, f.question(name)
	}
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
	if err = f.accept(answer, agent); errors.As(err, new(*beyondError)) && f.spec.Change != schemas.ChangeHandoff {
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
		f.reject("it cannot be applied any more: " + err.Error())
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
	edited, err := apply(t, dag, spec.Change, st.Answer.Edit, true)
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
		if st.Answer == nil {
			j.Message = st.Rejected[len(st.Rejected)-1]
		} else if j.Message = "refused by " + schemas.Acting(st.Answer.By, st.Answer.Proof) + because(st.Answer.Reason); st.Answer.Accept {
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

// handoff is the hand-off that the request is about, as its DAG was decided; nil where none asks for it.
func (f *changeFold) handoff() *schemas.Handoff {
	to, _ := f.spec.TargetRef()
	e := f.Tree.Entry(to)
	if e == nil {
		return nil
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	if st == nil {
		return nil
	}
	all := st.Nodes.Of(f.spec.Node).Handoff
	if all == nil {
		return nil
	}
	for k := range all.Chain {
		if x := &all.Chain[k]; x.PlanChange == f.Name && IsHandoff(f.spec, to.Name, f.spec.Node, x) {
			return x
		}
	}
	return nil
}

// askHandoff has an architect agree to a hand-off.
func (f *changeFold) askHandoff() {
	f.working = true
	f.st.Architect, _ = Architect(f.Tree, f.spec.By)
	if x := f.handoff(); x == nil || !x.Open() {
		f.giveUp("the hand-off is not waited for any more")
		return
	}
	for f.st.Architect != "" && len(f.st.Rejected) < mostAnswers {
		n := len(f.st.Rejected) + 1
		if f.st.AskedAt.IsZero() {
			f.st.AskedAt = f.st.Created
		}
		if !f.isDue(f.st.AskedAt.Time) {
			f.st.AnswerDAG, f.st.Question = "", ""
			f.waits = fmt.Sprintf("agent/%s is asked again at %s, try %d of %d", f.st.Architect, f.st.AskedAt.UTC().Format(time.RFC3339), n, mostAnswers)
			f.again = f.st.AskedAt.Time
			return
		}
		f.putQuestion(n)
		at, why := f.hearInTime(n)
		if why == "" {
			return
		}
		f.reject(why)
		f.st.AskedAt = schemas.NewTime(at.Add(time.Second << (n - 1)))
	}
	why := "there is no agent with the role architect any more"
	if n := len(f.st.Rejected); n > 0 {
		why = fmt.Sprintf("no usable answer of agent/%s in %d of %d tries: %s", f.st.Architect, n, mostAnswers, f.st.Rejected[n-1])
	}
	f.giveUp(why)
}

// isDue reports whether a time has come. A time that is far away was computed under a clock that was wrong.
func (f *changeFold) isDue(at time.Time) bool {
	return !f.Now.Before(at) || at.Sub(f.Now) > HandoffLimit
}

// hearInTime takes the answer of try n. why says that it is over without an answer that counts, and at is when it was.
func (f *changeFold) hearInTime(n int) (at time.Time, why string) {
	end := f.st.AskedAt.Add(handoffTry)
	node, finished := f.answerNode()
	switch {
	case !finished.IsZero() && finished.After(end):
		return end, f.tooLate()
	case node.State == schemas.NodeSucceeded:
		if err := f.hear(); err != nil {
			return finished, err.Error()
		}
		return at, ""
	case node.State == schemas.NodeFailed, node.State == schemas.NodeCancelled, node.State == schemas.NodeSkipped:
		if finished.IsZero() {
			finished = f.Now
		}
		return finished, fmt.Sprintf("agent/%s did not answer (%s): %s", f.st.Architect, node.Reason, node.Message)
	case f.isDue(end):
		return end, f.tooLate()
	}
	f.waits = fmt.Sprintf("agent/%s is asked in dag/%s, try %d of %d, until %s", f.st.Architect, f.st.AnswerDAG, n, mostAnswers, end.UTC().Format(time.RFC3339))
	if e := f.Tree.Entry(schemas.DAGKind.Ref(f.st.AnswerDAG)); e != nil && !e.Gone() && !f.isQuestion(state.SpecOf[*schemas.DAGSpec](e)) {
		f.waits += "; that DAG is another one, and is in the way"
	}
	f.again = end
	return at, ""
}

// answerNode is the node in which the architect answers the present try, and when its latest run ended.
func (f *changeFold) answerNode() (schemas.NodeStatus, time.Time) {
	e := f.Tree.Entry(schemas.DAGKind.Ref(f.st.AnswerDAG))
	if e == nil || e.Gone() || !f.isQuestion(state.SpecOf[*schemas.DAGSpec](e)) {
		return schemas.NodeStatus{}, time.Time{}
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	if st == nil {
		return schemas.NodeStatus{}, time.Time{}
	}
	n := st.Nodes.Of(answerNode)
	return n, n.FinishedAt.Time
}

func (f *changeFold) tooLate() string {
	return fmt.Sprintf("agent/%s gave no answer within %s in dag/%s, and one that comes later is ignored", f.st.Architect, handoffTry, f.st.AnswerDAG)
}

// giveUp ends the request without an answer.
func (f *changeFold) giveUp(why string) {
	at := schemas.NewTime(f.Now)
	f.end(nil, schemas.PlanRefused)
	f.st.AnswerDAG = ""
	f.reject(why)
	f.working = false
	f.history.Add(at, settle.ReasonRefused, why)
}

// keepsHandedOver refuses an edit of the node that is handed over: its work goes on as it is.
func (f *changeFold) keepsHandedOver(dag *state.Entry, e *Edited) error {
	if f.spec.Change != schemas.ChangeHandoff {
		return nil
	}
	name := f.spec.Node
	if was := schemas.SpecAs[*schemas.DAGSpec](dag.Object.Declared()); was.Node(name) == nil { // made of a node of the file
		for i := range was.Nodes {
			if n := &was.Nodes[i]; (n.Matrix != nil || n.DAG != "") && strings.HasPrefix(f.spec.Node, n.Name+"_") {
				name = n.Name
			}
		}
	}
	if i := slices.IndexFunc(e.Items, func(n Item) bool { return n.Name == name }); i < 0 || e.Items[i].Value != nil {
		return fmt.Errorf("node %s is handed over, and stays as it is: write instructions for the one who goes on with it", name)
	}
	return nil
}

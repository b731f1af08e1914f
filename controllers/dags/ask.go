package dags

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// mostQuestions bounds how many runs of a node may end with a question, so that an agent that only asks comes to an end.
const mostQuestions = 12

// onEscalationFail is the value of a node's onEscalation that ends it instead of letting it wait.
const onEscalationFail = "fail"

// sortQuestions hands each node the requests that it made under its present key.
func (f *fold) sortQuestions() {
	for _, q := range f.questions {
		if i, ok := f.p.Index[q.Node]; ok && q.Prefix == keys.OfRuns(f.p.Name, q.Node, f.b.Keys[i]) {
			f.recs[i].questions = append(f.recs[i].questions, q)
		}
	}
}

// pauses reports whether a run of node i ended with a question.
func (f *fold) pauses(i int32, run *schemas.Run) bool {
	if run.Outcome == schemas.OutcomeAsked || len(f.escalations) > 0 && f.escalates(i, run) {
		return true
	}
	qs := f.recs[i].questions
	if len(qs) == 0 {
		return false
	}
	_, seq := clarifications.SplitSeq(run.Key)
	return slices.ContainsFunc(qs, func(q *clarifications.Question) bool {
		return q.Spec.Blocking && (q.Seq == seq || clarifications.RequestsOf(f.World).Index.AskedOn(q, run.Key))
	})
}

// givenUp ends a node that asks too much, or whose question only a person can settle while it is not to wait for that.
func (f *fold) givenUp(i int32) bool {
	r, n := &f.recs[i], &f.p.Spec.Nodes[i]
	switch {
	case r.running():
		return false
	case r.asked > mostQuestions && r.pauses:
		f.set(i, schemas.NodeFailed, settle.ReasonTooManyQuestions, fmt.Sprintf(
			"it asked in %d runs and did not go on; answer in its prompt what it wants to know, or correct the agent", r.asked))
		return true
	case r.pauses && f.refusedAgain(i):
		return true
	case n.OnEscalation != onEscalationFail:
		return false
	}
	for _, q := range r.questions {
		st := settle.StatusAs[schemas.ClarificationRequestStatus](f.World, q.Entry)
		if f.holds(i, q) && st.Escalation != nil {
			f.set(i, schemas.NodeFailed, settle.ReasonEscalated, fmt.Sprintf("clarification %s was escalated: %s", st.ID,
				escalationText(st.Escalation)))
			return true
		}
	}
	return false
}

// refusedAgain ends a node that asks again what may not be asked.
func (f *fold) refusedAgain(i int32) bool {
	all := f.refused(i)
	for j, second := range all {
		for _, first := range all[:j] {
			if clarify.SameQuestion(first.spec, second.spec) {
				f.set(i, schemas.NodeFailed, settle.ReasonQuestionRefused, fmt.Sprintf("it asked %[1]s again what was refused: %[2]s; "+
					"say in its prompt what to assume, or list %[1]s in canClarify of agent/%[3]s",
					second.spec.To, second.why, second.spec.From))
				return true
			}
		}
	}
	return false
}

// refusal is a question that may not be asked.
type refusal struct {
	spec *schemas.ClarificationRequestSpec
	why  string
}

// refused are the questions of the node under its present key that were not taken: its requests, then what its runs
// printed, in their order.
func (f *fold) refused(i int32) []refusal {
	r := &f.recs[i]
	var out []refusal
	for _, q := range r.questions {
		if why := clarifications.Refusal(settle.StatusAs[schemas.ClarificationRequestStatus](f.World, q.Entry)); why != "" {
			out = append(out, refusal{q.Spec, why})
		}
	}
	if r.asked == 0 {
		return out
	}
	for _, run := range f.runsOf(i) {
		if run.Asks != nil &&
			clarifications.RequestsOf(f.World).Index.Takes(f.p.Name, run) == nil {
			spec := clarifications.SpecOfRun(f.Entry, run, 0)
			if err := clarifications.RequestsOf(f.World).ScopeOf(run.Agent, run.Key).Check(spec); err != nil {
				out = append(out, refusal{spec, err.Error()})
			}
		}
	}
	return out
}

func escalationText(e *schemas.Escalation) string {
	parts := []string{e.Topic}
	for _, p := range e.Positions {
		parts = append(parts, p.Agent+": "+strings.Join(strings.Fields(p.Body), " "))
	}
	return strings.Join(append(parts, e.Action), "; ")
}

// holds reports whether the node cannot go on while the question is open: it blocks, or the latest run ended with it.
func (f *fold) holds(i int32, q *clarifications.Question) bool {
	r := &f.recs[i]
	if q.Spec.Blocking {
		return true
	}
	return r.last != nil && r.last.Outcome == schemas.OutcomeAsked && clarifications.RequestsOf(f.World).Index.Takes(f.p.Name, r.last) == q
}

// waitsForAnswer blocks a node whose latest run asked, or which was interrupted after it had, while a question is open.
func (f *fold) waitsForAnswer(i int32) bool {
	r := &f.recs[i]
	if !r.pauses && r.last != nil {
		return false
	}
	reason, message := "", ""
	for _, q := range r.questions {
		if !f.holds(i, q) {
			continue
		}
		if why, text := f.openFor(q); why == settle.ReasonWaitsForAnswer || reason == "" {
			reason, message = why, text
		}
		if reason == settle.ReasonWaitsForAnswer {
			break
		}
	}
	if reason == "" && r.last != nil && f.unasked(r.last) {
		reason, message = settle.ReasonWaitsForAnswer, f.unaskedMessage(r.last)
	}
	if reason != "" {
		f.set(i, schemas.NodeBlocked, reason, message)
	}
	return reason != ""
}

// openFor says why a question keeps its node from going on; the reason is empty when it does not.
func (f *fold) openFor(q *clarifications.Question) (reason, message string) {
	st := settle.StatusAs[schemas.ClarificationRequestStatus](f.World, q.Entry)
	switch st.Phase {
	case schemas.ClarificationPending, schemas.ClarificationStale:
		return settle.ReasonWaitsForAnswer, fmt.Sprintf("Clarification %s pending from %s", st.ID, q.Spec.To)
	case schemas.ClarificationEscalated:
		return settle.ReasonEscalated, fmt.Sprintf("Clarification %s escalated, waits for a human", st.ID)
	case "":
		if c := st.Condition(schemas.Ready); c == nil || c.Reason == settle.ReasonAgentInvalid {
			return settle.ReasonWaitsForAnswer, "its question to " + q.Spec.To + " is not decided yet"
		}
	}
	return "", ""
}

// unasked reports whether a run asked something that no request contains yet. Questions out of scope never become
// requests.
func (f *fold) unasked(run *schemas.Run) bool {
	return run.Outcome == schemas.OutcomeAsked && run.Asks != nil && clarifications.RequestsOf(f.World).Index.Takes(f.p.Name, run) == nil &&
		clarifications.RequestsOf(f.World).ScopeOf(run.Agent, run.Key).Check(clarifications.SpecOfRun(f.Entry, run, 0)) == nil
}

// unaskedMessage says what an unasked question waits for: its request is written now, or has a broken file.
func (f *fold) unaskedMessage(run *schemas.Run) string {
	ref := schemas.ClarificationRequestKind.Ref(clarifications.SpecName(f.Name, run))
	if e := f.Tree.Entry(ref); e != nil && e.Broken() {
		return fmt.Sprintf("waits until %s is put right", ref)
	}
	return "its question to " + run.Asks.To + " is being put"
}

// answers are the node's own questions under its present key, for its next run, by number.
func (f *fold) answers(i int32) []agentio.Answered {
	var out []agentio.Answered
	for _, q := range f.recs[i].questions {
		if st := settle.StatusAs[schemas.ClarificationRequestStatus](f.World, q.Entry); st.ID != "" {
			out = append(out, clarifications.Answered(q.Spec, st))
		}
	}
	slices.SortStableFunc(out, func(a, b agentio.Answered) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// refusals say why questions of the node under its present key were not taken.
func (f *fold) refusals(i int32) []string {
	var out []string
	for _, r := range f.refused(i) {
		out = append(out, r.why)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

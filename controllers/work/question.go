package work

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// openQuestion is an open clarification as the list of work sees it.
type openQuestion struct {
	schemas.Clarification
	issue int
	entry *state.Entry // of its request; nil for a record of another program
	node  nodeName     // that asks; empty where none does
	wrong string       // why nobody can answer it, and what to do; "" for others
}

// nodeName is the name of a node with that of its DAG.
type nodeName struct{ dag, node string }

// openQuestions lists the clarifications that are open, by age and id: those of our requests, from their statuses, and those that
// other programs wrote into ledgers. One that is dormant waits for nobody. is is Open, or Waiting, a method that knows them by their Status; only they are decoded.
func openQuestions(t *state.Tree, is func(*schemas.Clarification) bool) []openQuestion {
	var out []openQuestion
	active, numbered := t.Active(schemas.ClarificationRequestKind.Name), true
	for _, e := range active {
		if numbered = numbered && e.Brief().ID != ""; e.Brief().ID == "" || !is(&schemas.Clarification{Status: e.Brief().Phase}) {
			continue
		}
		st, ok := e.Status().(*schemas.ClarificationRequestStatus)
		if spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object); ok && spec != nil {
			out = append(out, ownQuestion(e, spec, st))
		}
	}
	known := sync.OnceValue(func() map[string]bool {
		ids := map[string]bool{}
		for _, e := range active {
			ids[e.Brief().ID] = true
		}
		for o := range t.Dormant(schemas.ClarificationRequestKind.Name) {
			ids[o.Brief.ID] = true
		}
		return ids
	})
	for _, l := range t.Ledgers() {
		if l.Open == 0 || numbered && !l.Foreign {
			continue
		}
		for _, c := range l.Records() {
			if is(&c) && !known()[c.ID] && !ledgers.Orphaned(t, &c) {
				out = append(out, openQuestion{Clarification: c, issue: l.Issue, wrong: ledgers.Unroutable(t, &c)})
			}
		}
	}
	slices.SortFunc(out, func(a, b openQuestion) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), cmp.Compare(a.issue, b.issue), strings.Compare(a.ID, b.ID))
	})
	return out
}

func ownQuestion(
	e *state.Entry, spec *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus,
) openQuestion {
	q := openQuestion{issue: spec.Issue, entry: e, Clarification: schemas.Clarification{
		ID: st.ID, From: spec.From, To: spec.To, Topic: spec.Topic, Blocking: spec.Blocking, Status: st.Phase,
		Round: st.Round, MaxRounds: st.MaxRounds, Created: st.Created, Request: e.Name,
	}}
	if dag, node, ok := schemas.SplitRunKey(spec.Run); ok {
		q.node = nodeName{dag, node}
	}
	return q
}

// blocks reports whether the author cannot go on: the answer is missing, or a person has to decide.
func (q *openQuestion) blocks() bool {
	return q.Blocking && (q.Waiting() || q.Status == schemas.ClarificationEscalated)
}

// blockedReason is the word for why an item is blocked by the question.
func (q *openQuestion) blockedReason() string {
	if q.Status == schemas.ClarificationEscalated {
		return settle.ReasonEscalated
	}
	return settle.ReasonWaitsForAnswer
}

// condition returns the Ready condition of the request; nil for a record of another program.
func (q *openQuestion) condition() *schemas.Condition {
	if q.entry == nil || !q.entry.HasStatus() {
		return nil
	}
	return q.entry.Status().Base().Condition(schemas.Ready)
}

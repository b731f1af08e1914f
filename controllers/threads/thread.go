// Package threads shows questions between agents: their threads, the state in which they wait, and what an agent must know of them.
package threads

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Thread is a question between two agents as it is shown: the record of its ledger, and what the status of its request
// adds. Its JSON form is the record's, with issueNumber before it and the source of each turn.
type Thread struct {
	IssueNumber int `json:"issueNumber"`
	schemas.Clarification
	// Thread replaces the record's.
	Thread []schemas.ThreadEntry `json:"thread"`
	// Escalation is nil where it was never escalated, and where another program wrote the record.
	Escalation *schemas.Escalation `json:"escalation,omitempty"`
	// Summary is the thread in one or two sentences, once it is resolved.
	Summary string `json:"summary,omitempty"`
	// Why explains why a question is stale, stuck, or not accepted.
	Why string `json:"why,omitempty"`
	// Human is set if a person answers: the question is not routed automatically.
	Human bool `json:"-"`
	// Entry is the request; nil for a record that another program wrote into a ledger.
	Entry *state.Entry `json:"-"`
}

// Title is the id, or before there is one the name of the request.
func (c *Thread) Title() string { return cmp.Or(c.ID, c.Request) }

// Refused reports whether the request was never accepted: its agent may not ask there, or it is broken.
func (c *Thread) Refused() bool {
	return c.ID == "" && c.Entry != nil && clarifications.RefusalOf(c.Entry) != ""
}

// StateWord is the state; of a question that has none, whether it was refused or no run has accepted it yet.
func (c *Thread) StateWord() string {
	switch {
	case c.Status != "":
		return c.Status
	case c.Why != "":
		return "refused"
	}
	return "new"
}

// Next suggests the next command; "" for none.
func (c *Thread) Next() string {
	switch {
	case c.Refused():
		return ""
	case c.Entry != nil && readiness.IsStalled(c.Entry):
		return fmt.Sprintf("nothing is taken until %s is put right: %s", c.Entry.Ref, readiness.ConditionOf(c.Entry, schemas.Stalled).Message)
	case c.Status == "":
		return "the next run takes it"
	case c.Status == schemas.ClarificationAnswered:
		return fmt.Sprintf("ask on or settle it: reconcile clarify question|resolve %s TEXT", c.Title())
	case c.Status == schemas.ClarificationEscalated:
		return fmt.Sprintf("a human decides: reconcile clarify resolve %s TEXT", c.Title())
	case c.Waiting() && c.Human:
		return fmt.Sprintf("%s answers by: reconcile clarify answer %s TEXT", c.To, c.Title())
	}
	return ""
}

// Stands says in a sentence what the thread waits for.
func (c *Thread) Stands() string {
	if c.Why != "" {
		return c.Why
	}
	rounds := fmt.Sprintf("Round %d of %d.", c.Round, c.MaxRounds)
	switch c.Status {
	case schemas.ClarificationPending, schemas.ClarificationStale:
		return "Waits for the answer of " + c.To + ". " + rounds
	case schemas.ClarificationAnswered:
		return "Waits for " + c.From + " to ask on or to resolve it. " + rounds
	case schemas.ClarificationEscalated:
		return "Waits for a human: reconcile clarify resolve " + c.Title() + " TEXT"
	case schemas.ClarificationAbandoned:
		return c.From + " went on without an answer."
	case "":
		return "No run has taken it yet; the next one does."
	}
	return "The state " + c.Status + " is unknown to this program."
}

// All lists clarifications by issue and number: the records of the ledgers, and after those of their issue the requests
// that no ledger has yet. Only threads of the issue are listed, or of all issues with -1, and with open only those that are
// open.
func All(t *state.Tree, issue int, open bool) []Thread {
	var out []Thread
	recorded := map[string]bool{}
	imports := refusedImports(t)
	for _, l := range t.Ledgers() {
		if issue >= 0 && l.Issue != issue || open && l.Open == 0 {
			continue
		}
		for i := range l.Records() {
			c := &l.Records()[i]
			if open && !c.Open() {
				continue
			}
			m := recordedThread(t, l.Issue, c)
			if e := imports[c.ID]; e != nil && m.Entry == nil {
				recorded[e.Name], m.Why = true, cmp.Or(m.Why, clarifications.RefusalOf(e))
			}
			if m.Entry != nil {
				recorded[m.Entry.Name] = true
			}
			out = append(out, m)
		}
	}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec := clarifications.Spec(e)
		if spec == nil || recorded[e.Name] || issue >= 0 && spec.Issue != issue {
			continue
		}
		if m := OfRequest(t, e); !open || m.Open() && !m.Refused() {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(a.IssueNumber, b.IssueNumber), cmp.Compare(sequenceOf(a.ID), sequenceOf(b.ID)),
			strings.Compare(a.ID, b.ID), strings.Compare(a.Request, b.Request))
	})
	return out
}

// Decided is [All] for a tree that was decided and is not written yet: its statuses know all that the ledgers
// say, and more.
func Decided(t *state.Tree, issue int, open bool) []Thread {
	all := All(t, issue, false)
	for i := range all {
		all[i].follow()
	}
	if open {
		all = slices.DeleteFunc(all, func(m Thread) bool { return !m.Open() || m.Refused() })
	}
	return all
}

// follow brings a record up to date with the status of its request.
func (c *Thread) follow() {
	spec := clarifications.Spec(c.Entry)
	if spec == nil || c.ID == "" {
		return
	}
	st := clarifications.Status(c.Entry)
	if st.ID != c.ID || st.ObservedDigest != c.Entry.Object.Digest {
		return
	}
	c.Clarification, c.Thread = clarify.Record(c.Entry.Name, spec, st), st.Thread
}

// refusedImports are the requests for questions of other programs that may not be asked here, by their ids.
func refusedImports(t *state.Tree) map[string]*state.Entry {
	out := map[string]*state.Entry{}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if spec := clarifications.Spec(e); spec != nil && spec.Imported != "" && clarifications.RefusalOf(e) != "" {
			out[spec.Imported] = e
		}
	}
	return out
}

// sequenceOf is 7 of CLR-42-007; of no id it is larger than any.
func sequenceOf(id string) int {
	if _, seq, ok := clarify.ParseID(id); ok {
		return seq
	}
	return math.MaxInt
}

// recordedThread is a record of a ledger with what the status of its request adds.
func recordedThread(t *state.Tree, issue int, c *schemas.Clarification) Thread {
	m := Thread{IssueNumber: issue, Clarification: *c, Human: agents.IsPerson(t, c.To)}
	st := &schemas.ClarificationRequestStatus{}
	if e := t.Entry(schemas.ClarificationRequestKind.Ref(c.Request)); e != nil && clarifications.Status(e).ID == c.ID {
		m.Entry, st = e, clarifications.Status(e)
		m.Escalation, m.Summary = st.Escalation, st.Summary
	} else if why := ledgers.Unroutable(t, c); why != "" {
		m.Why = why
	} else if c.Open() && ledgers.Orphaned(t, c) {
		m.Why = fmt.Sprintf("request %q is not in the tree any more; put its file back, and then settle or abandon it", c.Request)
	}
	m.Thread = make([]schemas.ThreadEntry, len(c.Thread))
	for i, turn := range c.Thread {
		m.Thread[i] = schemas.ThreadEntry{ClarificationTurn: turn, Source: turnSource(st.Thread, turn)}
	}
	return m
}

// turnSource is the source of a turn of a ledger, from the status of the request.
func turnSource(thread []schemas.ThreadEntry, turn schemas.ClarificationTurn) string {
	for i := range thread {
		if thread[i].ClarificationTurn == turn {
			return thread[i].Source
		}
	}
	return "ledger"
}

// OfRequest is the thread of a request that no ledger has: it is new, was refused, or its ledger is to be written
// again.
func OfRequest(t *state.Tree, e *state.Entry) Thread {
	spec, st := clarifications.Spec(e), clarifications.Status(e)
	m := Thread{
		Entry: e, IssueNumber: spec.Issue, Escalation: st.Escalation, Summary: st.Summary, Human: agents.IsPerson(t, spec.To),
		Clarification: schemas.Clarification{
			ID: st.ID, From: spec.From, To: spec.To, Topic: spec.Topic, Blocking: spec.Blocking, Status: st.Phase,
			Round: st.Round, MaxRounds: st.MaxRounds, Created: st.Created, StaleAfter: st.StaleAfter,
			ResolvedAt: st.ResolvedAt, Request: e.Name,
		},
		Thread: st.Thread, Why: clarifications.RefusalOf(e),
	}
	if len(m.Thread) == 0 {
		first := schemas.ClarificationTurn{Round: 1, From: spec.From, Type: schemas.TurnQuestion, Body: spec.Question}
		m.Thread, m.Round = []schemas.ThreadEntry{{ClarificationTurn: first, Source: "request"}}, 1
	}
	return m
}

// Troubled selects the threads that are overdue, go in circles or wait for each other, with the reason. A thread that
// was escalated for one of these counts until it is resolved.
func Troubled(t *state.Tree, threads []Thread, now time.Time) []Thread {
	records := make([]schemas.Clarification, len(threads))
	for i := range threads {
		records[i] = threads[i].Clarification
	}
	why := map[string]string{} // by id
	found := clarify.Monitor(records, (&clarifications.Requests{Tree: t}).Precedence, now)
	for i := range found.Stale {
		why[found.Stale[i].ID] = "no answer in time: due " + found.Stale[i].StaleAfter.UTC().Format("2006-01-02 15:04:05Z")
	}
	for i := range found.Stuck {
		why[found.Stuck[i].ID] = "it goes in circles"
	}
	for i := range found.Deadlocked {
		why[found.Deadlocked[i].ID] = "it is part of a ring of questions that wait for each other"
	}
	var out []Thread
	for _, m := range threads {
		if m.Why = why[m.ID]; m.ID == "" || m.Why == "" {
			m.Why = escalatedThread(&m)
		}
		if m.Why != "" {
			out = append(out, m)
		}
	}
	return out
}

func escalatedThread(m *Thread) string {
	if m.Status != schemas.ClarificationEscalated || m.Escalation == nil {
		return ""
	}
	switch m.Escalation.Reason {
	case schemas.EscalatedStale:
		return "escalated: no answer in time, nor after the retry"
	case schemas.EscalatedStuck:
		return "escalated: it went in circles"
	case schemas.EscalatedDeadlock:
		return "escalated: it was part of a ring of questions that waited for each other"
	}
	return ""
}

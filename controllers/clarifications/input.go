package clarifications

import (
	"bytes"
	"fmt"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// provisional returns the provisional outcome of a request whose spec exists. It is computed once.
func (w *Requests) provisional(e *state.Entry) *provisional {
	if f := w.provisionals[e.Name]; f != nil {
		return f
	}
	f := w.decideAlone(e)
	if w.provisionals == nil {
		w.provisionals = map[string]*provisional{}
	}
	w.provisionals[e.Name] = f
	return f
}

func (w *Requests) decideAlone(e *state.Entry) *provisional {
	st := Status(e)
	if e.Broken() {
		j := settle.JudgeBroken(settle.In{Entry: e}, st.Phase)
		return &provisional{undecided: &j, digest: st.ObservedDigest}
	}
	if st.ID != "" && st.ObservedDigest != e.Object.Digest {
		j := settle.JudgeImmutable(st.Phase, "a request cannot be changed once it was accepted; put the text back, and write a new one")
		return &provisional{undecided: &j, digest: st.ObservedDigest}
	}
	spec := Spec(e)
	f := &provisional{digest: e.Object.Digest}
	if j, ok := w.unready(e, spec, st); ok {
		f.undecided = &j
		return f
	}
	f.input = w.input(e, spec)
	f.verdict = f.input.Decide()
	return f
}

// unready says why a request cannot be decided although its file is right: it is refused, or an agent's file is broken.
func (w *Requests) unready(e *state.Entry, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) (settle.Judgement, bool) {
	if j, refused := w.refusal(spec, st); refused {
		return j, true
	}
	if st.ID == "" && w.numberOf(e) == "" {
		if spec.Imported == "" {
			return settle.Judgement{Class: settle.ClassInvalid, Reason: settle.ReasonInvalidSpec, Message: fmt.Sprintf(
				"%s: the numbers of issue %d are used up: its ledger has one of nine digits; put the ledger right",
				e.Object.Path, spec.Issue)}, true
		}
		return settle.Judgement{Class: settle.ClassInvalid, Reason: settle.ReasonInvalidSpec, Message: fmt.Sprintf(
			"%s: spec.imported: %s cannot be this request's number: it is that of another one, or of another issue",
			e.Object.Path, spec.Imported)}, true
	}
	return settle.Judgement{}, false
}

// input gathers everything that bears on a request.
func (w *Requests) input(e *state.Entry, spec *schemas.ClarificationRequestSpec) clarify.Input {
	m := clarify.Input{Name: e.Name, Spec: spec, Digest: e.Object.Digest, ID: w.numberOf(e), Now: w.now,
		Limits: w.ScopeOf(spec.From, spec.Run).Limits(spec, w.Tree.Settings().Clarification), Target: w.target(spec.To), Runs: e.Runs()}
	m.Old, _ = e.Status().(*schemas.ClarificationRequestStatus)
	if m.Old != nil && m.Old.ID == "" {
		m.Old = nil // it was refused before
	}
	created := schemas.NewTime(w.now)
	if m.Old != nil {
		created = m.Old.Created
	}
	for i := range e.Claims {
		m.Running = append(m.Running, &e.Claims[i].Run)
	}
	m.Replies = w.repliesOf(e, m.ID)
	m.Ledger = recordOf(w.Tree.Ledger(spec.Issue), e.Name, m.ID, spec)
	m.Task = w.taskOf(e, spec)
	m.Left = w.leftBy(spec, created)
	return m
}

func (w *Requests) target(name string) clarify.Target {
	e := w.Tree.Entry(schemas.AgentKind.Ref(name))
	if e == nil || e.Gone() {
		return clarify.Target{Gone: true}
	}
	spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
	if spec == nil {
		return clarify.Target{Human: true} // its file is broken: nothing is run
	}
	runs := spec.Runner.Human == nil && profiles.Check(w.Tree.Settings().Profiles, &spec.Runner) == ""
	return clarify.Target{Human: !runs, Key: agents.RunnerDigest(spec)}
}

// orders returns which requests must be escalated because of others, by name. It uses the provisional outcomes, so one
// decision over a tree breaks every cycle.
func (w *Requests) orders() map[string]*clarify.Order {
	if w.ordered != nil {
		return w.ordered
	}
	w.ordered = map[string]*clarify.Order{}
	var records []schemas.Clarification
	all := w.Tree.Entries(schemas.ClarificationRequestKind.Name)
	asked := map[parties]bool{}
	for _, e := range all {
		asked[partiesOf(e)] = true
	}
	for _, e := range all {
		if b := e.Brief(); b.ID != "" && !schemas.ClarificationOpen(b.Phase) {
			continue // it is not opened again
		}
		if !asked[partiesOf(e).reversed()] && !mayBlock(e) {
			continue // it neither waits nor reverses another one
		}
		if st := w.provisionalStatus(e); st.ID != "" && schemas.ClarificationOpen(st.Phase) {
			if spec := Spec(e); spec != nil && e.Object.Digest == st.ObservedDigest {
				records = append(records, clarify.Record(e.Name, spec, st))
			}
		}
	}
	names := make(map[string]string, len(records))
	for i := range records {
		names[records[i].ID] = records[i].Request
	}
	for id, order := range clarify.Orders(records, w.Precedence) {
		w.ordered[names[id]] = order
	}
	return w.ordered
}

// parties are the agents that ask and are asked.
type parties struct{ from, to string }

func (p parties) reversed() parties { return parties{p.to, p.from} }

// partiesOf returns those of a request, without decoding it; empty if its file is broken.
func partiesOf(e *state.Entry) (p parties) {
	if e.Object == nil {
		return p
	}
	for _, r := range e.Object.Refs {
		switch r.Field[0] {
		case "from":
			p.from = r.To.Name
		case "to":
			p.to = r.To.Name
		}
	}
	return p
}

// mayBlock reports whether a request may be a blocking one, without decoding it.
func mayBlock(e *state.Entry) bool {
	return e.Object != nil && bytes.Contains(e.Object.Canonical(), []byte(`"blocking":true`))
}

// provisionalStatus is the status of a request without regard to other requests.
func (w *Requests) provisionalStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if e.Gone() || !w.world.Decides(e.Ref) {
		return Status(e)
	}
	f := w.provisional(e)
	if f.undecided != nil {
		return Status(e)
	}
	st := *f.verdict.Status
	st.ObservedDigest = f.digest
	return &st
}

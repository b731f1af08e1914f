package controllers

import (
	"fmt"
	"iter"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// provisional is the outcome of a decision about a request before other requests, a deadlock say, are considered.
type provisional struct {
	// undecided is why the request cannot be decided; its former status stays. nil if it can be decided.
	undecided *judgement
	// digest is what the status is about.
	digest  string
	input   clarify.Input
	verdict clarify.Decision
}

// provisional returns the provisional outcome of a request whose spec exists. It is computed once.
func (w *requests) provisional(e *state.Entry) *provisional {
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

func (w *requests) decideAlone(e *state.Entry) *provisional {
	st := requestStatusOf(e)
	if e.Broken() {
		j := brokenJudgement(In{Entry: e}, st.Phase)
		return &provisional{undecided: &j, digest: st.ObservedDigest}
	}
	if st.ID != "" && st.ObservedDigest != e.Object.Digest {
		j := immutable(st.Phase, "a request cannot be changed once it was accepted; put the text back, and write a new one")
		return &provisional{undecided: &j, digest: st.ObservedDigest}
	}
	spec := requestSpec(e)
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
func (w *requests) unready(e *state.Entry, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) (judgement, bool) {
	if j, refused := w.refusal(e, spec, st); refused {
		return j, true
	}
	if st.ID == "" && w.numberOf(e) == "" {
		if spec.Imported == "" {
			return judgement{class: invalid, reason: ReasonInvalidSpec, message: fmt.Sprintf(
				"%s: the numbers of issue %d are used up: its ledger has one of nine digits; put the ledger right",
				e.Object.Path, spec.Issue)}, true
		}
		return judgement{class: invalid, reason: ReasonInvalidSpec, message: fmt.Sprintf(
			"%s: spec.imported: %s cannot be this request's number: it is that of another one, or of another issue",
			e.Object.Path, spec.Imported)}, true
	}
	return judgement{}, false
}

// refusal says why a request gets no number, or waits with the one that it has: its agent may not ask that, or the file
// of an agent is broken.
func (w *requests) refusal(e *state.Entry, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) (judgement, bool) {
	if st.ID == "" {
		if err := w.scopeOf(spec.From).Check(spec); err != nil {
			j := judgement{class: failed, reason: ReasonScopeViolation, message: err.Error()}
			if spec.Imported != "" {
				j.class = waiting // nobody here asked it
			}
			return j, true
		}
	}
	for _, name := range []string{spec.From, spec.To} {
		a := w.tree.Entry(agentRef(name))
		if schemas.ClarificationOpen(st.Phase) && a != nil && a.Broken() {
			return judgement{phase: st.Phase, class: waiting, reason: ReasonAgentInvalid,
				message: fmt.Sprintf("waits until %s is put right", a.Ref)}, true
		}
	}
	return judgement{}, false
}

// input gathers everything that bears on a request.
func (w *requests) input(e *state.Entry, spec *schemas.ClarificationRequestSpec) clarify.Input {
	m := clarify.Input{Name: e.Name, Spec: spec, Digest: e.Object.Digest, ID: w.numberOf(e), Now: w.now,
		Limits: w.scopeOf(spec.From).Limits(spec, w.tree.Settings().Clarification), Target: w.target(spec.To), Runs: e.Runs()}
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
	m.Ledger = recordOf(w.tree.Ledger(spec.Issue), e.Name, m.ID, spec)
	m.Task = w.taskOf(e, spec)
	m.Left = w.leftBy(spec, created)
	return m
}

func (w *requests) target(name string) clarify.Target {
	e := w.tree.Entry(agentRef(name))
	if e == nil || e.Gone() {
		return clarify.Target{Gone: true}
	}
	spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
	if spec == nil {
		return clarify.Target{Human: true} // its file is broken: nothing is run
	}
	return clarify.Target{Human: spec.Runner.Command == nil, Key: runnerDigest(spec)}
}

// repliesOf lists the replies to a request that no other one took.
func (w *requests) repliesOf(e *state.Entry, id string) []clarify.Reply {
	var out []clarify.Reply
	for _, r := range w.index.repliesTo(e.Name, id) {
		spec := replySpec(r)
		if by := w.index.takerOf(r.Name); spec == nil || by != "" && by != e.Name {
			continue
		}
		from := w.tree.Entry(agentRef(spec.From))
		out = append(out, clarify.Reply{Name: r.Name, Digest: r.Object.Digest, Spec: spec,
			Agent: from != nil && !from.Gone()})
	}
	return out
}

// recordOf finds the record of a request in a ledger, or nil. Other programs may have dropped the field that names the
// request.
func recordOf(l *state.Ledger, name, id string, spec *schemas.ClarificationRequestSpec) *schemas.Clarification {
	if l == nil {
		return nil
	}
	records := l.Records()
	for i := range records {
		if c := &records[i]; c.ID == id && ours(c, name, spec) {
			return c
		}
	}
	return nil
}

// ours reports whether a record is about the request. One without a name and a thread is known by its parties and topic.
func ours(c *schemas.Clarification, name string, spec *schemas.ClarificationRequestSpec) bool {
	if c.Request != "" {
		return c.Request == name
	}
	bare := len(c.Thread) == 0 && c.From == spec.From && c.To == spec.To && c.Topic == spec.Topic
	return spec.Imported == c.ID || bare || sameQuestion(c, spec)
}

// scopeOf returns whom an agent may ask. Workflows are ordered by name.
func (w *requests) scopeOf(from string) clarify.Scope {
	if s, ok := w.scopes[from]; ok {
		return s
	}
	var agent *schemas.AgentSpec
	if e := w.tree.Entry(agentRef(from)); e != nil {
		agent = schemas.SpecAs[*schemas.AgentSpec](e.Object)
	}
	s := clarify.NewScope(from, agent, WorkflowSteps(w.tree))
	if w.scopes == nil {
		w.scopes = map[string]clarify.Scope{}
	}
	w.scopes[from] = s
	return s
}

// ScopeOf is whom an agent of the tree may ask, and under which limits.
func ScopeOf(t *state.Tree, from string) clarify.Scope {
	return (&requests{tree: t}).scopeOf(from)
}

// WorkflowSteps are the steps of all workflows that can be used, by the workflows' names and their own order.
func WorkflowSteps(t *state.Tree) iter.Seq[*schemas.Step] {
	return func(yield func(*schemas.Step) bool) {
		for _, e := range t.Entries(schemas.WorkflowKind.Name) {
			spec := schemas.SpecAs[*schemas.WorkflowSpec](e.Object)
			if spec == nil {
				continue
			}
			for i := range spec.Steps {
				if !yield(&spec.Steps[i]) {
					return
				}
			}
		}
	}
}

// orders returns which requests must be escalated because of others, by name. It uses the provisional outcomes, so one
// decision over a tree breaks every cycle.
func (w *requests) orders() map[string]*clarify.Order {
	if w.ordered != nil {
		return w.ordered
	}
	w.ordered = map[string]*clarify.Order{}
	var records []schemas.Clarification
	for _, e := range w.tree.Entries(schemas.ClarificationRequestKind.Name) {
		if st := requestStatusOf(e); st.ID != "" && !schemas.ClarificationOpen(st.Phase) {
			continue // it is not opened again
		}
		if st := w.provisionalStatus(e); st.ID != "" && schemas.ClarificationOpen(st.Phase) {
			if spec := requestSpec(e); spec != nil && e.Object.Digest == st.ObservedDigest {
				records = append(records, clarify.Record(e.Name, spec, st))
			}
		}
	}
	names := make(map[string]string, len(records))
	for i := range records {
		names[records[i].ID] = records[i].Request
	}
	for id, order := range clarify.Orders(records, w.precedence) {
		w.ordered[names[id]] = order
	}
	return w.ordered
}

// provisionalStatus is the status of a request without regard to other requests.
func (w *requests) provisionalStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if e.Gone() || !w.world.Decides(e.Ref) {
		return requestStatusOf(e)
	}
	f := w.provisional(e)
	if f.undecided != nil {
		return requestStatusOf(e)
	}
	st := *f.verdict.Status
	st.ObservedDigest = f.digest
	return &st
}

// precedence is larger for the more downstream agent.
func (w *requests) precedence(agent string) int {
	if e := w.tree.Entry(agentRef(agent)); e != nil {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil && spec.Precedence != nil {
			return *spec.Precedence
		}
	}
	return schemas.DefaultPrecedence(agent)
}

package clarifications

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// provisional is the outcome of a decision about a request before other requests, a deadlock say, are considered.
type provisional struct {
	// undecided is why the request cannot be decided; its former status stays. nil if it can be decided.
	undecided *settle.Judgement
	// digest is what the status is about.
	digest  string
	input   clarify.Input
	verdict clarify.Decision
}

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
	if j, refused := w.refusal(e, spec, st); refused {
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

// refusal says why a request gets no number, or waits with the one that it has: its agent may not ask that, or the file
// of an agent is broken.
func (w *Requests) refusal(e *state.Entry, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) (settle.Judgement, bool) {
	if st.ID == "" {
		if err := w.ScopeOf(spec.From).Check(spec); err != nil {
			j := settle.Judgement{Class: settle.ClassFailed, Reason: settle.ReasonScopeViolation, Message: err.Error()}
			if spec.Imported != "" {
				j.Class = settle.ClassWaiting // nobody here asked it
			}
			return j, true
		}
	}
	for _, name := range []string{spec.From, spec.To} {
		a := w.Tree.Entry(schemas.AgentKind.Ref(name))
		if schemas.ClarificationOpen(st.Phase) && a != nil && a.Broken() {
			return settle.Judgement{Phase: st.Phase, Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right", a.Ref)}, true
		}
	}
	return settle.Judgement{}, false
}

// input gathers everything that bears on a request.
func (w *Requests) input(e *state.Entry, spec *schemas.ClarificationRequestSpec) clarify.Input {
	m := clarify.Input{Name: e.Name, Spec: spec, Digest: e.Object.Digest, ID: w.numberOf(e), Now: w.now,
		Limits: w.ScopeOf(spec.From).Limits(spec, w.Tree.Settings().Clarification), Target: w.target(spec.To), Runs: e.Runs()}
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
	command := spec.Runner.AsCommand()
	return clarify.Target{Human: command == nil || profiles.Check(w.Tree.Settings().Profiles, command) != "", Key: agents.RunnerDigest(spec)}
}

// repliesOf lists the replies to a request that no other one took.
func (w *Requests) repliesOf(e *state.Entry, id string) []clarify.Reply {
	var out []clarify.Reply
	for _, r := range w.Index.repliesTo(e.Name, id) {
		spec := replySpec(r)
		if by := w.Index.takerOf(r.Name); spec == nil || by != "" && by != e.Name {
			continue
		}
		from := w.Tree.Entry(schemas.AgentKind.Ref(spec.From))
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

// ScopeOf returns whom an agent may ask. Workflows are ordered by name.
func (w *Requests) ScopeOf(from string) clarify.Scope {
	if s, ok := w.scopes[from]; ok {
		return s
	}
	var agent *schemas.AgentSpec
	if e := w.Tree.Entry(schemas.AgentKind.Ref(from)); e != nil {
		agent = schemas.SpecAs[*schemas.AgentSpec](e.Object)
	}
	s := clarify.NewScope(from, agent, agents.WorkflowSteps(w.Tree))
	if w.scopes == nil {
		w.scopes = map[string]clarify.Scope{}
	}
	w.scopes[from] = s
	return s
}

// ScopeOf is whom an agent of the tree may ask, and under which limits.
func ScopeOf(t *state.Tree, from string) clarify.Scope {
	return (&Requests{Tree: t}).ScopeOf(from)
}

// orders returns which requests must be escalated because of others, by name. It uses the provisional outcomes, so one
// decision over a tree breaks every cycle.
func (w *Requests) orders() map[string]*clarify.Order {
	if w.ordered != nil {
		return w.ordered
	}
	w.ordered = map[string]*clarify.Order{}
	var records []schemas.Clarification
	for _, e := range w.Tree.Entries(schemas.ClarificationRequestKind.Name) {
		if st := Status(e); st.ID != "" && !schemas.ClarificationOpen(st.Phase) {
			continue // it is not opened again
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

// Precedence is larger for the more downstream agent.
func (w *Requests) Precedence(agent string) int {
	if e := w.Tree.Entry(schemas.AgentKind.Ref(agent)); e != nil {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil && spec.Precedence != nil {
			return *spec.Precedence
		}
	}
	return schemas.DefaultPrecedence(agent)
}

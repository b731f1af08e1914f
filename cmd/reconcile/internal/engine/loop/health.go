package loop

import (
	"iter"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Agents are checked before their first use, outside of the lock of the tree. Until the first result nothing is claimed for them; later
// results replace it while work goes on. What a check finds is known to this process, and to others as a condition of the agent.

// health is the known health of an agent.
type health struct {
	of       *schemas.Object // that was checked
	why      string          // why it cannot work; "" if it can
	at       time.Time       // of the last result; zero: there is none yet
	checking bool
}

// checked is the result of a check.
type checked struct {
	agent string
	of    *schemas.Object
	why   string
}

// maxChecks bounds the checks whose results wait for a turn.
const maxChecks = 64

// ailing implements settle.Decider.Ailing.
func (s *run) ailing(agent string) (why string, known bool) {
	h := s.health[agent]
	if h == nil || h.at.IsZero() {
		return "", false
	}
	return h.why, true
}

// withoutUnchecked removes the effects from wanted that wait for the check of an agent, and starts the checks that are due.
func (s *run) withoutUnchecked(wanted []*settle.Effect) []*settle.Effect {
	if s.loop.CheckAgent == nil {
		return wanted
	}
	return slices.DeleteFunc(wanted, func(e *settle.Effect) bool {
		if e.Agent == "" || settle.ClaimOf(s.tree.Entry(e.Owner), e.Key) != nil {
			return false
		}
		if e.Instead != nil {
			s.check(e.Instead.Of) // it may work again
		}
		return s.mustCheck(e) && !s.check(e.Agent)
	})
}

// mustCheck reports whether the agent of an effect is checked: its spec asks for it, or it works in place of another.
func (s *run) mustCheck(e *settle.Effect) bool {
	spec := state.SpecOf[*schemas.AgentSpec](s.tree.Entry(schemas.AgentKind.Ref(e.Agent)))
	return spec != nil && (spec.IsChecked() || e.Instead != nil)
}

// check starts a check of an agent that is due, and reports whether the agent is known to work.
func (s *run) check(agent string) (works bool) {
	e := s.tree.Entry(schemas.AgentKind.Ref(agent))
	spec := state.SpecOf[*schemas.AgentSpec](e)
	if spec == nil {
		return true // its nodes wait for another reason
	}
	h := s.health[agent]
	if h == nil || h.of != e.Object && !h.checking {
		h = &health{of: e.Object}
		s.health[agent] = h
	}
	due := h.at.IsZero() || !s.loop.Now().Before(h.at.Add(spec.CheckEvery()))
	if due && !h.checking {
		h.checking = true
		go s.runCheck(agent, e.Object, s.tree.Settings(), spec)
	}
	return !due && h.why == ""
}

// runCheck checks an agent and hands the result over.
func (s *run) runCheck(agent string, of *schemas.Object, settings *schemas.SettingsSpec, spec *schemas.AgentSpec) {
	c := checked{agent: agent, of: of, why: s.loop.CheckAgent(s.checks, settings, spec)}
	select {
	case s.checked <- c:
	case <-s.checks.Done():
	}
}

// noteChecked takes the result of a check. What depends on it is decided again if it differs from the one before.
func (s *run) noteChecked(c checked) {
	h := s.health[c.agent]
	if h == nil {
		return
	}
	first, differs := h.at.IsZero(), h.why != c.why
	h.checking, h.of, h.why, h.at = false, c.of, c.why, s.loop.Now()
	if first || differs {
		s.touchUsers(c.agent)
	}
}

// touchUsers has an agent decided again, and what may wait for it or has to.
func (s *run) touchUsers(agent string) {
	s.touch(schemas.AgentKind.Ref(agent))
	for e := range s.workOf(agent) {
		s.touch(e.Ref)
	}
}

// workOf yields the DAGs and questions that an agent may work on, for itself or in place of another, and that have not ended.
func (s *run) workOf(agent string) iter.Seq[*state.Entry] {
	ref := schemas.AgentKind.Ref(agent)
	workers := append([]schemas.Ref{ref}, s.tree.ReferrersOf(ref, schemas.SessionKind.Name)...) // for whose work it is
	for _, r := range s.tree.ReferrersOf(ref, schemas.AgentKind.Name) {
		if spec := state.SpecOf[*schemas.AgentSpec](s.tree.Entry(r)); spec != nil && slices.Contains(spec.Fallback, agent) {
			workers = append(workers, r)
		}
	}
	return func(yield func(*state.Entry) bool) {
		for _, worker := range workers {
			for _, kind := range []string{schemas.DAGKind.Name, schemas.ClarificationRequestKind.Name} {
				for _, r := range s.tree.ReferrersOf(worker, kind) {
					if e := s.tree.Entry(r); e != nil && !hasEnded(e) && !yield(e) {
						return
					}
				}
			}
		}
	}
}

// hasEnded reports whether an object has nothing left to do.
func hasEnded(e *state.Entry) bool {
	if !e.HasStatus() {
		return false
	}
	switch e.Brief().Phase {
	case schemas.DAGSucceeded, schemas.DAGCancelled, schemas.ClarificationResolved, schemas.ClarificationAbandoned:
		return true
	}
	return false
}

// recheck starts the checks that are due of agents that could not work, while something waits for them.
func (s *run) recheck() {
	for agent, h := range s.health {
		if h.why == "" || h.checking || s.loop.Now().Before(s.checkDue(agent, h)) {
			continue
		}
		if s.hasWaiting(agent) {
			s.check(agent)
		} else {
			delete(s.health, agent) // it is checked before it is used again
		}
	}
}

// checkDue is the time of the next check of an agent.
func (s *run) checkDue(agent string, h *health) time.Time {
	spec := state.SpecOf[*schemas.AgentSpec](s.tree.Entry(schemas.AgentKind.Ref(agent)))
	if spec == nil {
		return h.at
	}
	return h.at.Add(spec.CheckEvery())
}

// hasWaiting reports whether work waits for an agent that cannot work.
func (s *run) hasWaiting(agent string) bool {
	for e := range s.workOf(agent) {
		if e.Kind != schemas.DAGKind.Name || waitsFor(e, settle.ReasonAgentUnhealthy) {
			return true
		}
	}
	return false
}

// waitsFor reports whether a node of a DAG waits for a reason.
func waitsFor(e *state.Entry, reason string) bool {
	if !e.HasStatus() {
		return false
	}
	for _, n := range schemas.NodesIn(e.Status()).All() {
		if n.Reason == reason {
			return true
		}
	}
	return false
}

// nextCheck is when an agent that could not work is checked again; zero: none is.
func (s *run) nextCheck() (next time.Time) {
	for agent, h := range s.health {
		if h.why != "" && !h.checking {
			next = spans.Sooner(next, s.checkDue(agent, h))
		}
	}
	return next
}

// awaitsCheck reports whether work waits for the check of an agent that may be able to do it.
func (s *run) awaitsCheck() bool {
	for _, h := range s.health {
		if h.checking && h.why == "" {
			return true
		}
	}
	return false
}

// healthWake is now if a node waits for an agent that could not work, or for the version of a tool: the next run checks that again.
// Zero: none waits.
func (s *run) healthWake() time.Time {
	for _, e := range s.tree.Active(schemas.DAGKind.Name) {
		if e.Brief().Blocked && (waitsFor(e, settle.ReasonAgentUnhealthy) || waitsFor(e, settle.ReasonToolUnknown)) {
			return s.loop.Now()
		}
	}
	return time.Time{}
}

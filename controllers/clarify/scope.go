package clarify

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Scope defines whom an agent may ask, and under which limits.
type Scope struct {
	from  string
	agent []string        // what the Agent object lists
	steps []*schemas.Step // those of the agent, in order
}

// NewScope makes the scope of the questions from an agent: the agents that it can clarify with, and its steps in
// workflows. agent may be nil. steps are those of all workflows, in the order of the workflows' names and then of their
// lists; those of other agents are skipped.
func NewScope(from string, agent *schemas.AgentSpec, steps iter.Seq[*schemas.Step]) Scope {
	s := Scope{from: from}
	if agent != nil {
		s.agent = agent.CanClarify
	}
	for st := range steps {
		if st.Agent == from {
			s.steps = append(s.steps, st)
		}
	}
	return s
}

// Allowed returns the sorted agents that the scope's agent and its steps can clarify with.
func (s Scope) Allowed() []string {
	out := slices.Clone(s.agent)
	for _, st := range s.steps {
		out = append(out, st.CanClarify...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// step returns the step of the scope that governs questions to an agent: the first one that can clarify with it; nil if
// none does.
func (s Scope) step(to string) *schemas.Step {
	for _, st := range s.steps {
		if slices.Contains(st.CanClarify, to) {
			return st
		}
	}
	return nil
}

// Check is the scope guard. It returns an [*Error] of kind ScopeViolation for an agent that may not be asked, and for a
// question that blocks where the governing step does not allow it.
func (s Scope) Check(spec *schemas.ClarificationRequestSpec) error {
	st := s.step(spec.To)
	if st == nil && !slices.Contains(s.agent, spec.To) {
		return scopeError(s.from, spec.To, s.Allowed())
	}
	if spec.Blocking && st != nil && st.ClarifyBlockingAllowed != nil && !*st.ClarifyBlockingAllowed {
		return &Error{ScopeViolation, fmt.Sprintf("agent '%s' cannot block on '%s': step %q has "+
			"clarify_blocking_allowed = false; ask without blocking", s.from, spec.To, st.ID)}
	}
	return nil
}

// Limits returns the limits of a question, its rounds, SLA minutes and time to a retry: from the request's spec, else
// from the governing step, else from the settings. Rounds are never above the hard cap, 5 for questions that block and
// 6 for others.
func (s Scope) Limits(spec *schemas.ClarificationRequestSpec, set schemas.ClarificationSettings) Limits {
	st := s.step(spec.To)
	if st == nil {
		st = new(schemas.Step)
	}
	rounds := hardCap(spec.Blocking)
	for _, n := range []int{st.ClarifyMaxRounds, spec.MaxRounds} {
		if n > 0 {
			rounds = min(n, hardCap(spec.Blocking))
		}
	}
	return Limits{Rounds: rounds, SLA: sla(spec.SLAMinutes, st.ClarifySLAMinutes, set.SLAMinutes),
		RetryAfter: retryAfter(set)}
}

func hardCap(blocking bool) int {
	if blocking {
		return schemas.ClarifyRoundsBlocking
	}
	return schemas.ClarifyRoundsOpen
}

// sla is the first one that is set.
func sla(minutes ...*int) time.Duration {
	for _, m := range minutes {
		if m != nil {
			return time.Duration(*m) * time.Minute
		}
	}
	return schemas.DefaultClarifySLAMinutes * time.Minute
}

// defaultRetryAfter is the time between a failed run and the second try where the settings do not say (PRD 6, 6b).
const defaultRetryAfter = 30 * time.Second

func scopeError(from, to string, allowed []string) *Error {
	return &Error{ScopeViolation, fmt.Sprintf("agent '%s' cannot clarify with '%s'; allowed: [%s]",
		from, to, strings.Join(allowed, ", "))}
}

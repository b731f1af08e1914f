package clarify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Scope defines whom an agent may ask, and under which limits.
type Scope struct {
	from  string
	agent []string // what the Agent object lists
	node  schemas.Clarify
}

// NewScope makes the scope of the questions from an agent: the agents that it can clarify with, and what the node says whose run asks.
// Outside of a run node is nil. agent may be nil.
func NewScope(from string, agent *schemas.AgentSpec, node *schemas.Clarify) Scope {
	s := Scope{from: from}
	if agent != nil {
		s.agent = agent.CanClarify
	}
	if node != nil {
		s.node = *node
	}
	return s
}

// Allowed returns the sorted agents that the scope's agent can clarify with.
func (s Scope) Allowed() []string {
	out := slices.Concat(s.agent, s.node.Agents)
	slices.Sort(out)
	return slices.Compact(out)
}

// Check is the scope guard. It returns an [*Error] of kind ScopeViolation for an agent that may not be asked, and for a
// question that blocks where the node does not allow it.
func (s Scope) Check(spec *schemas.ClarificationRequestSpec) error {
	if !slices.Contains(s.agent, spec.To) && !slices.Contains(s.node.Agents, spec.To) {
		return scopeError(s.from, spec.To, s.Allowed())
	}
	if allowed := s.node.BlockingAllowed; spec.Blocking && allowed != nil && !*allowed {
		return &Error{ScopeViolation, fmt.Sprintf("agent '%s' cannot block on '%s': its step has clarify_blocking_allowed = false; "+
			"ask without blocking", s.from, spec.To)}
	}
	return nil
}

// Limits returns the limits of a question, its rounds, SLA minutes and time to a retry: from the request's spec, else
// from the node, else from the settings. Rounds are never above the hard cap, 5 for questions that block and
// 6 for others.
func (s Scope) Limits(spec *schemas.ClarificationRequestSpec, set schemas.ClarificationSettings) Limits {
	rounds := hardCap(spec.Blocking)
	for _, n := range []int{s.node.MaxRounds, spec.MaxRounds} {
		if n > 0 {
			rounds = min(n, hardCap(spec.Blocking))
		}
	}
	return Limits{Rounds: rounds, SLA: sla(spec.SLAMinutes, s.node.SLAMinutes, set.SLAMinutes),
		RetryAfter: retryAfter(set)}
}

// hardCap is the number of rounds after which a question is escalated, whatever its scope says.
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

package agents

import (
	"strconv"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var columns = []settle.Column{
	readiness.Ready,
	readiness.OfStatus("STATUS", func(s *schemas.AgentStatus) string { return s.Status }),
	readiness.OfStatus("ISSUE", issueOfAgent),
	readiness.OfStatus("CLARIFICATION", func(s *schemas.AgentStatus) string { return textOf(s.ClarificationID) }),
	readiness.OfStatus("WAITING ON", waitingOn),
	readiness.OfStatus("RESPONDING TO", func(s *schemas.AgentStatus) string { return textOf(s.RespondingTo) }),
	readiness.OfSpec("ROLE", func(s *schemas.AgentSpec) string { return s.Role }),
	readiness.OfSpec("RUNNER", runnerWord),
	readiness.OfSpec("MODEL", func(s *schemas.AgentSpec) string { return s.Model }),
	{Head: "LAST", Time: func(e *state.Entry) schemas.Time {
		if s, ok := e.Status().(*schemas.AgentStatus); ok {
			return s.LastActivity
		}
		return schemas.Time{}
	}},
}

func issueOfAgent(s *schemas.AgentStatus) string {
	if s.Issue == nil {
		return ""
	}
	return "#" + strconv.Itoa(*s.Issue)
}

// waitingOn is the agent that this one waits for, or a permission.
func waitingOn(s *schemas.AgentStatus) string {
	if c := s.Condition(schemas.Ready); c != nil && c.Reason == settle.ReasonWaitsForPermission {
		return "a permission"
	}
	return textOf(s.WaitingOn)
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func runnerWord(s *schemas.AgentSpec) string {
	switch c := s.Runner.AsCommand(); {
	case c != nil && c.Profile != "":
		return c.Profile
	case s.Runner.ACP != nil && len(c.Argv) > 0:
		return c.Argv[0] + " (acp)"
	case c != nil && len(c.Argv) > 0:
		return c.Argv[0]
	case s.Runner.HTTP != nil:
		return "http"
	case s.Runner.Human != nil:
		return "human"
	}
	return ""
}

var details = []settle.Column{
	readiness.OfStatus("Activity", func(s *schemas.AgentStatus) string { return s.AgentActivity.Status }),
	readiness.TimeOf("Last active", func(s *schemas.AgentStatus) schemas.Time { return s.LastActivity }),
}

// Kind is the row of kind Agent.
var Kind = settle.Kind{Kind: schemas.AgentKind, Decide: decide, Columns: columns, Details: details,
	Foretold: true, Affects: affects, KeepSpec: true}

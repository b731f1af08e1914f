package controllers

import (
	"fmt"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Column is one column of the table of a kind, or one line about an object.
type Column struct {
	Head string
	Text func(*state.Entry) string       // "" where there is nothing to say; nil: the column shows a time
	Time func(*state.Entry) schemas.Time // shown by how long ago it was
}

// ColumnsOrDefault returns the columns of the table, after the name.
func (k *Kind) ColumnsOrDefault() []Column {
	if k.Columns == nil {
		return []Column{readyColumn, phaseColumn}
	}
	return k.Columns
}

// Columns that several kinds have.
var (
	readyColumn = Column{Head: "READY", Text: ReadyWord}
	phaseColumn = Column{Head: "PHASE", Text: PhaseWord}
	sinceColumn = Column{Head: "SINCE", Time: func(e *state.Entry) schemas.Time {
		if c := ConditionOf(e, schemas.Ready); c != nil {
			return c.LastTransitionTime
		}
		return schemas.Time{}
	}}
)

func ofSpec[S schemas.Spec](head string, text func(S) string) Column {
	return Column{Head: head, Text: func(e *state.Entry) string {
		if e.Object == nil {
			return ""
		}
		return text(schemas.SpecAs[S](e.Object))
	}}
}

func ofStatus[S schemas.Status](head string, text func(S) string) Column {
	return Column{Head: head, Text: func(e *state.Entry) string {
		if s, ok := e.Status().(S); ok {
			return text(s)
		}
		return ""
	}}
}

var sessionColumns = []Column{
	readyColumn, phaseColumn,
	ofSpec("OWNER", func(s *schemas.SessionSpec) string { return s.Owner }),
	ofSpec("PRIORITY", func(s *schemas.SessionSpec) string { return string(s.Priority) }),
	ofStatus("NODES", func(s *schemas.SessionStatus) string { return s.Progress.String() }),
	ofStatus("ACTIVE", func(s *schemas.SessionStatus) string { return schemas.Shorten(s.ActiveDAGs, 3) }),
	sinceColumn,
}

var agentColumns = []Column{
	readyColumn,
	ofStatus("STATUS", func(s *schemas.AgentStatus) string { return s.Status }),
	ofStatus("ISSUE", issueOfAgent),
	ofStatus("CLARIFICATION", func(s *schemas.AgentStatus) string { return textOf(s.ClarificationID) }),
	ofStatus("WAITING ON", func(s *schemas.AgentStatus) string { return textOf(s.WaitingOn) }),
	ofStatus("RESPONDING TO", func(s *schemas.AgentStatus) string { return textOf(s.RespondingTo) }),
	ofSpec("ROLE", func(s *schemas.AgentSpec) string { return s.Role }),
	ofSpec("RUNNER", runnerWord),
	ofSpec("MODEL", func(s *schemas.AgentSpec) string { return s.Model }),
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

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func runnerWord(s *schemas.AgentSpec) string {
	switch {
	case s.Runner.Human != nil:
		return "human"
	case s.Runner.Command != nil && len(s.Runner.Command.Argv) > 0:
		return s.Runner.Command.Argv[0]
	}
	return ""
}

var workflowColumns = []Column{
	readyColumn,
	ofSpec("STEPS", func(s *schemas.WorkflowSpec) string { return strconv.Itoa(len(s.Steps)) }),
	ofSpec("TITLE", func(s *schemas.WorkflowSpec) string { return s.Title }),
}

var dagColumns = []Column{
	readyColumn, phaseColumn,
	ofSpec("SESSION", func(s *schemas.DAGSpec) string { return s.Session }),
	{Head: "NODES", Text: func(e *state.Entry) string {
		s, ok := e.Status().(*schemas.DAGStatus)
		switch {
		case !ok:
			return ""
		case NotHere(e) != nil:
			return s.Progress.String() + ", outputs not here"
		}
		return s.Progress.String()
	}},
	sinceColumn,
}

var requestColumns = []Column{
	ofStatus("ID", func(s *schemas.ClarificationRequestStatus) string { return s.ID }),
	readyColumn, phaseColumn,
	ofSpec("FROM", func(s *schemas.ClarificationRequestSpec) string { return s.From }),
	ofSpec("TO", func(s *schemas.ClarificationRequestSpec) string { return s.To }),
	ofSpec("BLOCKING", func(s *schemas.ClarificationRequestSpec) string { return fmt.Sprint(s.Blocking) }),
	ofSpec("TOPIC", func(s *schemas.ClarificationRequestSpec) string { return s.Topic }),
}

var replyColumns = []Column{
	readyColumn,
	ofSpec("TYPE", func(s *schemas.ReplySpec) string { return s.Type }),
	ofSpec("FROM", func(s *schemas.ReplySpec) string { return s.From }),
	ofSpec("CLARIFICATION", func(s *schemas.ReplySpec) string { return s.Clarification }),
	{Head: "WHY", Text: Because},
}

var observationColumns = []Column{
	readyColumn,
	ofSpec("AGENT", func(s *schemas.ObservationSpec) string { return s.Agent }),
	ofSpec("ENTRIES", func(s *schemas.ObservationSpec) string { return strconv.Itoa(len(s.Entries)) }),
	{Head: "AGE", Time: func(e *state.Entry) schemas.Time {
		if s := schemas.SpecAs[*schemas.ObservationSpec](e.Object); s != nil {
			return s.Timestamp
		}
		return schemas.Time{}
	}},
}

var actionColumns = []Column{
	readyColumn, phaseColumn,
	ofSpec("VERB", func(s *schemas.ActionSpec) string { return s.Verb }),
	ofSpec("TARGET", func(s *schemas.ActionSpec) string { return strings.TrimSpace(s.Target + " " + s.Node) }),
	ofSpec("BY", func(s *schemas.ActionSpec) string { return s.By }),
	sinceColumn,
}

var dagDetails = []Column{
	ofStatus("Progress", func(s *schemas.DAGStatus) string { return s.Progress.String() + " nodes" }),
	timeOfStatus("Started", func(s *schemas.DAGStatus) schemas.Time { return s.StartedAt }),
	timeOfStatus("Finished", func(s *schemas.DAGStatus) schemas.Time { return s.FinishedAt }),
}

var sessionDetails = []Column{
	ofStatus("Progress", func(s *schemas.SessionStatus) string { return s.Progress.String() + " nodes" }),
	ofStatus("Active DAGs", func(s *schemas.SessionStatus) string { return schemas.Shorten(s.ActiveDAGs, 10) }),
}

var agentDetails = []Column{
	ofStatus("Activity", func(s *schemas.AgentStatus) string { return s.AgentActivity.Status }),
	timeOfStatus("Last active", func(s *schemas.AgentStatus) schemas.Time { return s.LastActivity }),
}

func timeOfStatus[S schemas.Status](head string, at func(S) schemas.Time) Column {
	return Column{Head: head, Time: func(e *state.Entry) schemas.Time {
		if s, ok := e.Status().(S); ok {
			return at(s)
		}
		return schemas.Time{}
	}}
}

package main

import (
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// column is one column of the table of a kind.
type column struct {
	head string
	cell func(e *state.Entry, now time.Time) render.Cell
}

// kindColumns are the columns of each kind, between NAME and SINCE. A kind without a line gets READY and PHASE.
var kindColumns = map[string][]column{
	schemas.SessionKind.Name: {
		ready, phase,
		specColumn("OWNER", func(s *schemas.SessionSpec) string { return s.Owner }),
		specColumn("PRIORITY", func(s *schemas.SessionSpec) string { return string(s.Priority) }),
		statusColumn("NODES", func(s *schemas.SessionStatus) string { return fraction(s.Progress) }),
		statusColumn("ACTIVE", func(s *schemas.SessionStatus) string { return shorten(s.ActiveDAGs, 3) }),
		since,
	},
	schemas.AgentKind.Name: {
		ready,
		statusColumn("STATUS", func(s *schemas.AgentStatus) string { return s.Status }),
		specColumn("ROLE", func(s *schemas.AgentSpec) string { return s.Role }),
		specColumn("RUNNER", runnerWord),
		specColumn("MODEL", func(s *schemas.AgentSpec) string { return s.Model }),
		{"LAST", func(e *state.Entry, now time.Time) render.Cell {
			if s, ok := e.Status().(*schemas.AgentStatus); ok {
				return ago(s.LastActivity, now)
			}
			return dash
		}},
	},
	schemas.WorkflowKind.Name: {
		ready,
		specColumn("STEPS", func(s *schemas.WorkflowSpec) string { return number(len(s.Steps)) }),
		specColumn("TITLE", func(s *schemas.WorkflowSpec) string { return s.Title }),
	},
	schemas.DAGKind.Name: {
		ready, phase,
		specColumn("SESSION", func(s *schemas.DAGSpec) string { return s.Session }),
		{"NODES", func(e *state.Entry, _ time.Time) render.Cell {
			s, ok := e.Status().(*schemas.DAGStatus)
			switch {
			case !ok:
				return dash
			case controllers.NotHere(e) != nil:
				return render.Cell{Text: fraction(s.Progress) + ", outputs not here"}
			}
			return render.Cell{Text: fraction(s.Progress)}
		}},
		since,
	},
	schemas.ClarificationRequestKind.Name: {
		statusColumn("ID", func(s *schemas.ClarificationRequestStatus) string { return s.ID }),
		ready, phase,
		specColumn("FROM", func(s *schemas.ClarificationRequestSpec) string { return s.From }),
		specColumn("TO", func(s *schemas.ClarificationRequestSpec) string { return s.To }),
		specColumn("BLOCKING", func(s *schemas.ClarificationRequestSpec) string { return fmt.Sprint(s.Blocking) }),
		specColumn("TOPIC", func(s *schemas.ClarificationRequestSpec) string { return s.Topic }),
	},
	schemas.ReplyKind.Name: {
		ready,
		specColumn("TYPE", func(s *schemas.ReplySpec) string { return s.Type }),
		specColumn("FROM", func(s *schemas.ReplySpec) string { return s.From }),
		specColumn("CLARIFICATION", func(s *schemas.ReplySpec) string { return s.Clarification }),
		{"WHY", func(e *state.Entry, _ time.Time) render.Cell { return orDash(because(e)) }},
	},
	schemas.ObservationKind.Name: {
		ready,
		specColumn("AGENT", func(s *schemas.ObservationSpec) string { return s.Agent }),
		specColumn("ENTRIES", func(s *schemas.ObservationSpec) string { return number(len(s.Entries)) }),
		{"AGE", func(e *state.Entry, now time.Time) render.Cell {
			if s := schemas.SpecAs[*schemas.ObservationSpec](e.Object); s != nil {
				return ago(s.Timestamp, now)
			}
			return dash
		}},
	},
	schemas.ActionKind.Name: {
		ready, phase,
		specColumn("VERB", func(s *schemas.ActionSpec) string { return s.Verb }),
		specColumn("TARGET", func(s *schemas.ActionSpec) string { return strings.TrimSpace(s.Target + " " + s.Node) }),
		specColumn("BY", func(s *schemas.ActionSpec) string { return s.By }),
		since,
	},
}

// Columns that several kinds have.
var (
	ready = column{"READY", func(e *state.Entry, _ time.Time) render.Cell { return readyCell(e) }}
	phase = column{"PHASE", func(e *state.Entry, _ time.Time) render.Cell { return phaseCell(e) }}
	since = column{"SINCE", func(e *state.Entry, now time.Time) render.Cell {
		if c := condition(e, schemas.Ready); c != nil {
			return ago(c.LastTransitionTime, now)
		}
		return dash
	}}
	dash = render.Cell{Text: "-"}
)

func specColumn[S schemas.Spec](head string, text func(S) string) column {
	return column{head, func(e *state.Entry, _ time.Time) render.Cell {
		if e.Object == nil {
			return dash
		}
		return orDash(text(schemas.SpecAs[S](e.Object)))
	}}
}

func statusColumn[S schemas.Status](head string, text func(S) string) column {
	return column{head, func(e *state.Entry, _ time.Time) render.Cell {
		s, ok := e.Status().(S)
		if !ok {
			return dash
		}
		return orDash(text(s))
	}}
}

func orDash(s string) render.Cell {
	if s == "" {
		return dash
	}
	return render.Cell{Text: s, Color: render.StateColor(s)}
}

func ago(t schemas.Time, now time.Time) render.Cell {
	if t.IsZero() {
		return dash
	}
	return render.Cell{Text: render.Age(now.Sub(t.Time))}
}

func fraction(p schemas.Progress) string { return fmt.Sprintf("%d/%d", p.Done, p.Total) }

func runnerWord(s *schemas.AgentSpec) string {
	switch {
	case s.Runner.Human != nil:
		return "human"
	case s.Runner.Command != nil && len(s.Runner.Command.Argv) > 0:
		return s.Runner.Command.Argv[0]
	}
	return ""
}

// kindTable prints objects of one kind.
func (a *app) kindTable(kind string, entries []*state.Entry) error {
	columns, ok := kindColumns[kind]
	if !ok {
		columns = []column{ready, phase}
	}
	heads := []string{"NAME"}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	t := render.NewTable(a.palette(), heads...)
	now := a.now()
	for _, e := range entries {
		row := []render.Cell{{Text: e.Name}}
		for _, c := range columns {
			row = append(row, c.cell(e, now))
		}
		t.Cells(row...)
	}
	return t.Write(a.stdout)
}

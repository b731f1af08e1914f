package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Wait is something that a person has to do before work goes on.
type Wait struct {
	// What waits: dag/checks/review or CLR-42-001.
	What string `json:"what"`
	// Who names the person; empty for anyone.
	Who string `json:"who,omitempty"`
	// Task is what the person is to do, in a line.
	Task string `json:"task"`
	// Command goes on when that is done.
	Command string `json:"command"`
	// Form is the JSON Schema of the TEXT in the command; nil for any text.
	Form json.RawMessage `json:"form,omitempty"`
}

// anyone is who may do what is no approval.
const anyone = "a person"

// String describes it in a line.
func (w Wait) String() string {
	text := fmt.Sprintf("%s waits for %s: %s; go on with: %s", w.What, cmp.Or(w.Who, "approval"), w.Task, w.Command)
	if len(w.Form) > 0 {
		text += ", where TEXT is " + schemas.FormOutline(w.Form)
	}
	return text
}

// Waits lists what the statuses of a tree say that people have to do before a selection can be done: nodes by DAG and name,
// then questions.
func Waits(t *state.Tree, s *settle.Selection, now time.Time) []Wait {
	in := s.In(t)
	var out []Wait
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if !e.Brief().Blocked {
			continue
		}
		st, ok := e.Status().(*schemas.DAGStatus)
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		if !ok || spec == nil {
			continue
		}
		task := tasksOf(t, e, now)
		for i := range spec.Nodes {
			n := &spec.Nodes[i]
			if st.Nodes.Of(n.Name).State != schemas.NodeBlocked || !in(e.Ref, n.Name) {
				continue
			}
			w := Wait{What: e.Ref.String() + "/" + n.Name, Task: task(n),
				Command: fmt.Sprintf("reconcile approve %s %s", e.Ref, n.Name)}
			switch s := st.Nodes.Of(n.Name); {
			case s.Reason == settle.ReasonWaitsForPerson:
				if w.Who = agents.Contact(t, n.Agent); n.Approve != nil && len(n.Approve.Form) > 0 {
					w.Command, w.Form = w.Command+" --answer TEXT", n.Approve.Form
				}
			case s.Reason == settle.ReasonWaitsForApproval:
				a := n.Approve
				if s.Landed != nil {
					a = n.PreviewOf(state.SpecOf[*schemas.SessionSpec](t.Entry(schemas.SessionKind.Ref(spec.Session)))).Approval()
				}
				w.Who, w.Task = strings.Join(a.By, ", "), toApprove(&s, w.Task)
				if _, command, ok := strings.Cut(s.Message, "; reconcile "); ok {
					w.Command = "reconcile " + command
				}
				w.Form = a.Form
			case s.Reason == settle.ReasonWaitsForPermission:
				if open := permits.Waiting(t, e, n.Name); len(open) > 0 {
					w.Task = "allow " + n.Agent + " to " + permits.Describe(&open[0])
				}
			case s.Reason == settle.ReasonRateLimited:
				message, _, _ := strings.Cut(s.Message, dags.RetryToGoOn)
				w.Who, w.Task, w.Command = anyone, fmt.Sprintf("let agent/%s go on after its limit: %s", n.Agent, message), fmt.Sprintf("reconcile retry %s %s", e.Ref, n.Name)
			case s.Reason == settle.ReasonLandingRefused:
				w.Who, w.Task, w.Command = anyone, s.Message, fmt.Sprintf("reconcile retry %s %s", e.Ref, n.Name)
			case s.Reason != settle.ReasonHeld:
				continue // for an answer
			}
			out = append(out, w)
		}
	}
	for _, q := range openQuestions(t, (*schemas.Clarification).Waiting) {
		if q.wrong == "" && agents.IsPerson(t, q.To) && in(schemas.ClarificationRequestKind.Ref(q.Request), "") {
			out = append(out, Wait{What: q.ID, Who: agents.Contact(t, q.To), Task: "answer " + q.From + ": " + q.Topic,
				Command: "reconcile clarify answer " + q.ID + " TEXT"})
		}
	}
	out = append(out, planWaits(t, in)...)
	for _, e := range t.Active(schemas.SessionKind.Name) {
		if sessions.Approvable(e) && in(e.Ref, "") {
			st := e.Status().(*schemas.SessionStatus)
			why, _, _ := strings.Cut(st.Quality.Message, sessions.Choices)
			out = append(out, Wait{What: e.Ref.String(), Who: anyone, Task: "decide about its work, since " + why, Command: "reconcile retry " + e.Ref.String()})
		}
	}
	return out
}

// planWaits lists the plan changes that wait for people.
func planWaits(t *state.Tree, in func(schemas.Ref, string) bool) (out []Wait) {
	for _, e := range t.Active(schemas.PlanChangeKind.Name) {
		spec := planchanges.Spec(e)
		if spec == nil || !forPerson(e) || !in(e.Ref, "") {
			continue
		}
		w := Wait{What: e.Ref.String(), Who: personFor(t, e), Task: spec.Said(), Command: planchanges.Command(e.Ref)}
		if w.Who != "" {
			w.Who = cmp.Or(agents.Contact(t, w.Who), w.Who)
		}
		out = append(out, w)
	}
	return out
}

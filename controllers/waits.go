package controllers

import (
	"cmp"
	"fmt"

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
}

func (w Wait) String() string {
	return fmt.Sprintf("%s waits for %s: %s; go on with: %s", w.What, cmp.Or(w.Who, "approval"), w.Task, w.Command)
}

// Waits lists what the statuses of a tree say that people have to do: nodes by DAG and name, then questions.
func Waits(t *state.Tree) []Wait { return (*Selection)(nil).Waits(t) }

// Waits lists what people have to do before the selection can be done.
func (s *Selection) Waits(t *state.Tree) []Wait {
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
		for i := range spec.Nodes {
			n := &spec.Nodes[i]
			w := Wait{What: e.Ref.String() + "/" + n.Name, Task: taskOf(n),
				Command: fmt.Sprintf("reconcile approve %s %s", e.Ref, n.Name)}
			switch s := st.Nodes[n.Name]; {
			case s.State != schemas.NodeBlocked || !in(e.Ref, n.Name):
				continue
			case s.Reason == ReasonWaitsForPerson:
				w.Who = contactOf(t, n.Agent)
			case s.Reason != ReasonHeld:
				continue // for an answer
			}
			out = append(out, w)
		}
	}
	for _, q := range openQuestions(t) {
		if q.Waiting() && q.wrong == "" && IsPerson(t, q.To) && in(requestRef(q.Request), "") {
			out = append(out, Wait{What: q.ID, Who: contactOf(t, q.To), Task: "answer " + q.From + ": " + q.Topic,
				Command: "reconcile clarify answer " + q.ID + " TEXT"})
		}
	}
	return out
}

// contactOf is the contact of an agent that is a person.
func contactOf(t *state.Tree, agent string) string {
	if e := t.Entry(agentRef(agent)); e != nil {
		spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
		if spec != nil && spec.Runner.Human != nil && spec.Runner.Human.Contact != "" {
			return spec.Runner.Human.Contact
		}
	}
	return agent
}

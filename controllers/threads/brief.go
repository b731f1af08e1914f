package threads

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Brief is what an agent must know when it takes up an issue, or ends its work on it. Each list is in the order of the
// ledgers.
type Brief struct {
	// Blocked are the agent's own blocking questions about the issue that are not settled: it cannot continue.
	Blocked []schemas.Clarification `json:"blocked"`
	// Answered are its questions about the issue that were answered, or resolved since.
	Answered []schemas.Clarification `json:"answered"`
	// Asked are the questions, about whatever issue, that wait for its answer.
	Asked []schemas.Clarification `json:"asked"`
	// Abandoned are the questions that it gave up when it started this work.
	Abandoned []schemas.Clarification `json:"abandoned,omitempty"`
}

// AboutIssue returns the titles and descriptions of the sessions of an issue.
func AboutIssue(t *state.Tree, issue int) string {
	var texts []string
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if s := schemas.SpecAs[*schemas.SessionSpec](e.Object); s != nil && s.Issue == issue && issue > 0 {
			texts = append(texts, s.Title, s.Description)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// NewBrief gathers from the ledgers what an agent must know about an issue. Questions that were resolved before since
// are left out. left is what [LeftBehind] said before the agent took the issue up.
func NewBrief(t *state.Tree, agent string, issue int, since schemas.Time, left []schemas.Clarification) Brief {
	b := Brief{Blocked: []schemas.Clarification{}, Answered: []schemas.Clarification{}, Asked: []schemas.Clarification{},
		Abandoned: gaveUp(t, left)}
	for _, l := range t.Ledgers() {
		if l.Open == 0 && l.Issue != issue {
			continue
		}
		for _, c := range l.Records() {
			switch {
			case c.Open() && ledgers.Orphaned(t, &c):
			case c.To == agent && c.Waiting() && ledgers.Unroutable(t, &c) == "":
				b.Asked = append(b.Asked, c)
			case c.From == agent && l.Issue == issue:
				b.own(c, since)
			}
		}
	}
	return b
}

// LeftBehind lists the questions that an agent gives up when it starts work on an issue: the unanswered ones about
// other issues that it asked outside of DAGs.
func LeftBehind(t *state.Tree, agent string, issue int) []schemas.Clarification {
	var out []schemas.Clarification
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec, st := clarifications.Spec(e), clarifications.Status(e)
		if spec == nil || spec.From != agent || spec.Issue == issue || st.Phase != schemas.ClarificationPending {
			continue
		}
		if _, _, asked := schemas.SplitRunKey(spec.Run); !asked {
			out = append(out, clarify.Record(e.Name, spec, st))
		}
	}
	return out
}

// gaveUp keeps the questions that are still unanswered.
func gaveUp(t *state.Tree, left []schemas.Clarification) []schemas.Clarification {
	return slices.DeleteFunc(left, func(c schemas.Clarification) bool {
		phase := clarifications.Status(t.Entry(schemas.ClarificationRequestKind.Ref(c.Request))).Phase
		return phase != schemas.ClarificationPending && phase != schemas.ClarificationAbandoned
	})
}

func (b *Brief) own(c schemas.Clarification, since schemas.Time) {
	switch {
	case c.Blocking && (c.Waiting() || c.Status == schemas.ClarificationEscalated):
		b.Blocked = append(b.Blocked, c)
	case c.Status == schemas.ClarificationAnswered,
		c.Status == schemas.ClarificationResolved && !c.ResolvedAt.Before(since.Time):
		b.Answered = append(b.Answered, c)
	}
}

// BlockedLine is the label of work that the clarification blocks (agentx-prd US-3.2).
func BlockedLine(c *schemas.Clarification) string {
	if c.Status == schemas.ClarificationEscalated {
		return fmt.Sprintf("BLOCKED: Clarification %s escalated, waits for a human", c.ID)
	}
	return fmt.Sprintf("BLOCKED: Clarification %s pending from %s", c.ID, c.To)
}

// Text tells the agent of the questions, in a paragraph for each.
func (b *Brief) Text() string {
	var s strings.Builder
	paragraph := func(c *schemas.Clarification, head, end string, answered bool) {
		s.WriteString("\n" + head + "\n")
		writeTurn(&s, "Q", c, schemas.TurnQuestion)
		if answered {
			writeTurn(&s, "A", c, schemas.TurnAnswer, schemas.TurnResolution)
		}
		s.WriteString(end)
	}
	for i := range b.Blocked {
		paragraph(&b.Blocked[i], BlockedLine(&b.Blocked[i]), "", false)
	}
	for i := range b.Abandoned {
		c := &b.Abandoned[i]
		paragraph(c, fmt.Sprintf("ABANDONED: Clarification %s: %s", c.ID, c.Topic), "  It was asked about another issue, and nobody waits "+
			"for the answer any more. Where it still matters, ask again with \"reconcile clarify ask\".\n", false)
	}
	for i := range b.Answered {
		c := &b.Answered[i]
		paragraph(c, fmt.Sprintf("%s %s: %s", c.ID, c.Status, c.Topic), "", true)
	}
	for i := range b.Asked {
		c := &b.Asked[i]
		paragraph(c, fmt.Sprintf("%s asked by %s: %s", c.ID, c.From, c.Topic), fmt.Sprintf("  reconcile clarify answer %s TEXT\n", c.ID), false)
	}
	return s.String()
}

// writeTurn writes the latest turn of one of the types, indented, so that it cannot be mistaken for a line of the report.
func writeTurn(s *strings.Builder, mark string, c *schemas.Clarification, types ...string) {
	for i := range slices.Backward(c.Thread) {
		if slices.Contains(types, c.Thread[i].Type) {
			body := strings.ReplaceAll(strings.TrimSpace(c.Thread[i].Body), "\n", "\n     ")
			fmt.Fprintf(s, "  %s: %s\n", mark, body)
			return
		}
	}
}

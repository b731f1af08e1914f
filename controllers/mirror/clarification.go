package mirror

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// timeForm is how comments write a time, which is UTC.
const timeForm = "2006-01-02 15:04 UTC"

// nameLength is how much is shown of the name of whoever says something, in characters.
const nameLength = 100

func requestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
		return st
	}
	return new(schemas.ClarificationRequestStatus)
}

// matter is a question that is written about.
type matter struct {
	*projection
	e    *state.Entry
	spec *schemas.ClarificationRequestSpec
	st   *schemas.ClarificationRequestStatus
	i    *Issue
}

// request tells how a question stands, what was said in each round, and whom people have to help. One that was never
// taken, and has no number, is not shown.
func (p *projection) request(e *state.Entry, i *Issue) {
	m := matter{p, e, schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object), requestStatus(e), i}
	if m.st.ID == "" {
		return
	}
	i.status(e, m.status())
	m.rounds()
	m.escalation()
	if schemas.ClarificationOpen(m.st.Phase) {
		i.label(labelActive)
	}
	switch m.st.Phase {
	case schemas.ClarificationStale:
		i.label(labelStale)
	case schemas.ClarificationEscalated:
		i.label(labelEscalated)
	}
}

func (m *matter) status() string {
	b := m.newBody(m.e)
	b.paragraph("### Clarification %s: %s", code(m.st.ID), code(cmp.Or(m.st.Phase, "refused")))
	blocking := "no"
	if m.spec.Blocking {
		blocking = "yes"
	}
	b.table([]string{"Question", "From", "To", "Blocking", "Round"}, [][]string{{
		Line(m.spec.Topic, cellLength), name(m.spec.From), name(m.spec.To), blocking,
		fmt.Sprintf("%d of %d", m.st.Round, m.st.MaxRounds)}})
	b.paragraph("%s", m.stands())
	b.quoted(m.st.Summary)
	return b.done()
}

// stands says what the matter waits for.
func (m *matter) stands() string {
	switch m.st.Phase {
	case schemas.ClarificationPending, schemas.ClarificationStale:
		return m.waitsForAnswer()
	case schemas.ClarificationAnswered:
		return "Waits for " + name(m.spec.From) + " to ask on, or to resolve it."
	case schemas.ClarificationEscalated:
		return fmt.Sprintf("Waits for a person: comment `/resolve %s` and what was decided.", m.st.ID)
	case schemas.ClarificationAbandoned:
		return name(m.spec.From) + " went on without an answer."
	case schemas.ClarificationResolved:
		return "It is settled."
	}
	return "Its state is unknown to this program."
}

func (m *matter) waitsForAnswer() string {
	line := "Waits for the answer of " + name(m.spec.To)
	if due := m.st.StaleAfter.UTC().Format(timeForm); m.st.Phase == schemas.ClarificationStale {
		line += ", which was due at " + due + "."
	} else {
		line += ", until " + due + "."
	}
	to := m.t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: m.spec.To})
	if to != nil && to.Object != nil && schemas.SpecAs[*schemas.AgentSpec](to.Object).Runner.Human != nil {
		line += fmt.Sprintf(" It is for people: comment `/answer %s` and the answer.", m.st.ID)
	}
	return line
}

// name is who says something, as people write it.
func name(who string) string { return Line(clarify.DisplayName(who), nameLength) }

// rounds adds a comment for each round. What was escalated has a comment of its own.
func (m *matter) rounds() {
	for n := 1; n <= m.st.Round+1; n++ { // a resolution may come one round later
		var said []schemas.ThreadEntry
		for _, e := range m.st.Thread {
			if e.Round == n && e.Type != schemas.TurnEscalation {
				said = append(said, e)
			}
		}
		if len(said) > 0 {
			m.i.Comments = append(m.i.Comments, Comment{Key: m.key("round", n), Body: m.round(n, said)})
		}
	}
}

func (m *matter) key(what string, n int) string { return fmt.Sprintf("%s/%s/%d", what, m.st.ID, n) }

// round is one round in the form of AgentX: who asks whom, and below it as a quotation what was said.
func (m *matter) round(n int, said []schemas.ThreadEntry) string {
	b := m.newBody(m.e)
	for _, e := range said {
		at := ""
		if !e.Timestamp.IsZero() {
			at = " <sub>" + e.Timestamp.UTC().Format(timeForm) + "</sub>"
		}
		switch e.Type {
		case schemas.TurnQuestion:
			b.paragraph("**[%s -> %s] Clarification:** %s (%s, round %d of %d)%s", name(e.From), name(m.spec.To),
				Line(m.spec.Topic, cellLength), code(m.st.ID), n, m.st.MaxRounds, at)
		case schemas.TurnResolution:
			goesOn := ""
			if e.From == m.spec.From {
				goesOn = " Continuing..."
			}
			b.paragraph("**[%s] Clarification resolved.%s**%s", name(e.From), goesOn, at)
		default:
			b.paragraph("**[%s]**%s", name(e.From), at)
		}
		b.quoted(e.Body)
	}
	return b.done()
}

// escalation adds the comment that asks people to decide, with whom it mentions. Of several the last counts; comments on
// earlier ones stay as they were written.
func (m *matter) escalation() {
	var last schemas.ThreadEntry
	n := 0
	for _, e := range m.st.Thread {
		if e.Type == schemas.TurnEscalation {
			last, n = e, n+1
		}
	}
	if n == 0 {
		return
	}
	b := m.newBody(m.e)
	b.paragraph("**[ESCALATED] %s: %s**", code(m.st.ID), Line(m.spec.Topic, cellLength))
	if who := m.o.mentions(); who != "" {
		b.paragraph("%s: agents could not settle this, and need you to decide.", who)
	}
	if x := m.st.Escalation; x != nil {
		b.paragraph("Why: %s", Line(clarify.Because(x.Reason, last.Body), whyLength))
		if x.Reason == schemas.EscalatedByReply && clarify.Circumstances(x.Reason, last.Body) == "" {
			b.quoted(last.Body)
		}
		for _, side := range x.Positions {
			b.paragraph("**%s**:", name(side.Agent))
			b.quoted(side.Body)
		}
		var options []string
		for _, o := range x.Options {
			options = append(options, Line(o, whyLength))
		}
		b.list("Options", options)
	} else {
		b.quoted(last.Body)
	}
	b.paragraph("**Action needed:** decide, then comment %s here, or run %s.",
		"`/resolve "+m.st.ID+" what was decided`", "`reconcile clarify resolve "+m.st.ID+" \"what was decided\"`")
	m.i.Comments = append(m.i.Comments, Comment{Key: m.key("escalation", n), Body: b.done()})
}

package mirror

import (
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// timeForm is how comments write a time, which is UTC.
const timeForm = "2006-01-02 15:04 UTC"

// nameLength is the maximum length of a shown author name, in characters.
const nameLength = 100

// Clarification mirrors requests, in the order in which they were numbered.
var Clarification = Projector{
	Home: func(o *schemas.Object) (int, schemas.Ref) {
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](o)
		if dag, _, ok := schemas.SplitRunKey(spec.Run); ok {
			return spec.Issue, schemas.Ref{Kind: schemas.DAGKind.Name, Name: dag}
		}
		return spec.Issue, schemas.Ref{}
	},
	About: func(o *schemas.Object) (title, description string) {
		return schemas.SpecAs[*schemas.ClarificationRequestSpec](o).Topic, ""
	},
	Write:   writeRequest,
	Compare: compareRequests,
}

// clarificationText is a question that is written about.
type clarificationText struct {
	page *Page
	spec *schemas.ClarificationRequestSpec
	st   *schemas.ClarificationRequestStatus
}

// writeRequest shows the state of a question, the turns of each round, and the people who must help. One that was never
// accepted, and has no number, is not shown.
func writeRequest(p *Page) {
	m := clarificationText{p, schemas.SpecAs[*schemas.ClarificationRequestSpec](p.Entry.Object), requestStatus(p.Entry)}
	if m.st.ID == "" {
		return
	}
	p.Status(m.status())
	m.rounds()
	m.escalation()
	if schemas.ClarificationOpen(m.st.Phase) {
		p.Label(labelActive)
	}
	switch m.st.Phase {
	case schemas.ClarificationStale:
		p.Label(labelStale)
	case schemas.ClarificationEscalated:
		p.Label(labelEscalated)
	}
}

func (m *clarificationText) status() *Body {
	b := m.page.NewBody()
	b.Paragraph("### Clarification %s: %s", codeText(m.st.ID), codeText(cmp.Or(m.st.Phase, "refused")))
	blocking := "no"
	if m.spec.Blocking {
		blocking = "yes"
	}
	b.table([]string{"Question", "From", "To", "Blocking", "Round"}, [][]string{{
		lineText(m.spec.Topic, cellLength), threadName(m.spec.From), threadName(m.spec.To), blocking,
		fmt.Sprintf("%d of %d", m.st.Round, m.st.MaxRounds)}})
	b.Paragraph("%s", m.stands())
	b.Quoted(m.st.Summary)
	return b
}

// stands says what the question waits for.
func (m *clarificationText) stands() string {
	switch m.st.Phase {
	case schemas.ClarificationPending, schemas.ClarificationStale:
		return m.waitsForAnswer()
	case schemas.ClarificationAnswered:
		return "Waits for " + threadName(m.spec.From) + " to ask on, or to resolve it."
	case schemas.ClarificationEscalated:
		return fmt.Sprintf("Waits for a person: comment `/resolve %s` and what was decided.", m.st.ID)
	case schemas.ClarificationAbandoned:
		return threadName(m.spec.From) + " went on without an answer."
	case schemas.ClarificationResolved:
		return "It is settled."
	}
	return "Its state is unknown to this program."
}

func (m *clarificationText) waitsForAnswer() string {
	line := "Waits for the answer of " + threadName(m.spec.To)
	if due := m.st.StaleAfter.UTC().Format(timeForm); m.st.Phase == schemas.ClarificationStale {
		line += ", which was due at " + due + "."
	} else {
		line += ", until " + due + "."
	}
	to := m.page.projection.t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: m.spec.To})
	if to != nil && to.Object != nil && schemas.SpecAs[*schemas.AgentSpec](to.Object).Runner.Human != nil {
		line += fmt.Sprintf(" It is for people: comment `/answer %s` and the answer.", m.st.ID)
	}
	return line
}

// threadName is who says something, as people write it.
func threadName(who string) string { return lineText(clarify.DisplayName(who), nameLength) }

// rounds adds a comment for each round. An escalation has a separate comment.
func (m *clarificationText) rounds() {
	for n := 1; n <= m.st.Round+1; n++ { // a resolution may come one round later
		var said []schemas.ThreadEntry
		for _, e := range m.st.Thread {
			if e.Round == n && e.Type != schemas.TurnEscalation {
				said = append(said, e)
			}
		}
		if len(said) > 0 {
			m.page.comment(m.key("round", n), m.round(n, said))
		}
	}
}

func (m *clarificationText) key(what string, n int) string {
	return fmt.Sprintf("%s/%s/%d", what, m.st.ID, n)
}

// round formats one round as AgentX does: who asks whom, followed by the quoted turns.
func (m *clarificationText) round(n int, said []schemas.ThreadEntry) *Body {
	b := m.page.NewBody()
	for _, e := range said {
		at := ""
		if !e.Timestamp.IsZero() {
			at = " <sub>" + e.Timestamp.UTC().Format(timeForm) + "</sub>"
		}
		switch e.Type {
		case schemas.TurnQuestion:
			b.Paragraph("**[%s -> %s] Clarification:** %s (%s, round %d of %d)%s", threadName(e.From), threadName(m.spec.To),
				lineText(m.spec.Topic, cellLength), codeText(m.st.ID), n, m.st.MaxRounds, at)
		case schemas.TurnResolution:
			goesOn := ""
			if e.From == m.spec.From {
				goesOn = " Continuing..."
			}
			b.Paragraph("**[%s] Clarification resolved.%s**%s", threadName(e.From), goesOn, at)
		default:
			b.Paragraph("**[%s]**%s", threadName(e.From), at)
		}
		b.Quoted(e.Body)
	}
	return b
}

// escalation adds the comment that asks people to decide, with whom it mentions. Of several the last counts; comments on
// earlier ones stay as they were written.
func (m *clarificationText) escalation() {
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
	b := m.page.NewBody()
	b.Paragraph("**[ESCALATED] %s: %s**", codeText(m.st.ID), lineText(m.spec.Topic, cellLength))
	if who := m.page.projection.o.mentions(); who != "" {
		b.Paragraph("%s: agents could not settle this, and need you to decide.", who)
	}
	if x := m.st.Escalation; x != nil {
		b.Paragraph("Why: %s", lineText(clarify.Because(x.Reason, last.Body), whyLength))
		if x.Reason == schemas.EscalatedByReply && clarify.Circumstances(x.Reason, last.Body) == "" {
			b.Quoted(last.Body)
		}
		for _, side := range x.Positions {
			b.Paragraph("**%s**:", threadName(side.Agent))
			b.Quoted(side.Body)
		}
		var options []string
		for _, o := range x.Options {
			options = append(options, lineText(o, whyLength))
		}
		b.List("Options", options)
	} else {
		b.Quoted(last.Body)
	}
	b.Paragraph("**Action needed:** decide, then comment %s here, or run %s.",
		"`/resolve "+m.st.ID+" what was decided`", "`reconcile clarify resolve "+m.st.ID+" \"what was decided\"`")
	m.page.comment(m.key("escalation", n), b)
}

// compareRequests orders requests as their questions were numbered, the time that passes on an issue.
func compareRequests(a, b *state.Entry) int {
	x, y := requestStatus(a), requestStatus(b)
	return cmp.Or(x.Created.Compare(y.Created.Time), strings.Compare(x.ID, y.ID), strings.Compare(a.Name, b.Name))
}

// mentions returns the mentioned people, as GitHub writes them; it leaves out names that cannot be a login or a team.
func (o Options) mentions() string {
	var out []string
	for _, m := range o.Mention {
		m = strings.TrimPrefix(strings.TrimSpace(m), "@")
		org, team, isTeam := strings.Cut(m, "/")
		if isHandle(org) && (!isTeam || isHandle(team)) {
			out = append(out, "@"+m)
		}
	}
	return strings.Join(out, " ")
}

func isHandle(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

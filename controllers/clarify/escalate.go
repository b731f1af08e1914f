package clarify

import (
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// cause is why, and when, a matter is escalated.
type cause struct {
	reason  string // one of the Escalated constants
	at      schemas.Time
	message string // in a sentence
}

// options are what a human can do, best first, by reason. %[1]s asks, %[2]s was asked.
var options = map[string][]string{
	schemas.EscalatedMaxRounds: {"decide between the positions", "say what would settle the last question",
		"give the question to another agent"},
	schemas.EscalatedAgent: {"answer in place of %[2]s", "repair the runner of %[2]s and ask again",
		"let %[1]s go on with an assumption"},
	schemas.EscalatedStale: {"answer in place of %[2]s", "give the question to another agent",
		"let %[1]s go on with an assumption"},
	schemas.EscalatedStuck: {"decide between the positions", "reword the question so that it has one answer",
		"change what both sides build on"},
	schemas.EscalatedDeadlock: {"answer in place of %[2]s", "let %[1]s go on with an assumption",
		"wait until the other question of the ring is answered, and resolve this one with it"},
	schemas.EscalatedByReply: {"decide", "answer in place of %[2]s"},
	schemas.EscalatedTarget: {"answer in place of %[2]s", "bring %[2]s back and ask again",
		"give the question to another agent"},
}

// escalate passes the question to a human.
func (d *clarifyDecider) escalate(c cause) {
	e := schemas.ThreadEntry{Source: SourceMonitor, ClarificationTurn: schemas.ClarificationTurn{Round: d.st.Round,
		From: Hub, Type: schemas.TurnEscalation, Timestamp: c.at}}
	d.escalateBy(c, e, "")
}

// exhausted escalates because of a question after the last round. The escalation quotes it instead of asking it.
func (d *clarifyDecider) exhausted(e schemas.ThreadEntry) {
	question := e.Body
	e.Round, e.From, e.Type, e.Body = d.st.Round, Hub, schemas.TurnEscalation, ""
	d.escalateBy(cause{schemas.EscalatedMaxRounds, e.Timestamp, roundsUsed(d.st.MaxRounds)}, e, question)
}

// escalateBy escalates with an entry; an empty body is composed. question is one that could not be asked any more.
func (d *clarifyDecider) escalateBy(c cause, e schemas.ThreadEntry, question string) {
	if !d.move(schemas.ClarificationEscalated, c.at, c.message) {
		return
	}
	d.st.Escalation = d.compose(c.reason, question)
	if e.Body == "" {
		e.Body = escalationText(d.st.Escalation, c.message)
	}
	d.addEntry(e)
}

func (d *clarifyDecider) compose(reason, question string) *schemas.Escalation {
	asks := cmp.Or(question, lastBody(d.st.Thread, schemas.TurnQuestion))
	says := cmp.Or(lastBody(d.st.Thread, schemas.TurnAnswer), "(no answer)")
	opts := make([]string, len(options[reason]))
	for i, o := range options[reason] {
		opts[i] = strings.NewReplacer("%[1]s", d.input.Spec.From, "%[2]s", d.input.Spec.To).Replace(o)
	}
	return &schemas.Escalation{Reason: reason, Topic: d.input.Spec.Topic, Options: opts, Action: action(d.st.ID),
		Positions: []schemas.Position{{Agent: d.input.Spec.From, Body: asks}, {Agent: d.input.Spec.To, Body: says}}}
}

// Lengths that keep the text of an escalation below maxBody.
const (
	positionChars = 400
	messageChars  = 300
)

// escalationText is the entry of an escalation in the thread. Its first line is "Escalated (<reason>): <topic>".
func escalationText(e *schemas.Escalation, why string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Escalated (%s): %s\n%s.\n", e.Reason, e.Topic, strings.TrimSuffix(cut(why, messageChars), "."))
	for _, p := range e.Positions {
		fmt.Fprintf(&b, "%s: %s\n", p.Agent, cut(oneLine(p.Body), positionChars))
	}
	for i, o := range e.Options {
		fmt.Fprintf(&b, "%d. %s\n", i+1, o)
	}
	b.WriteString(e.Action)
	return cut(b.String(), maxBody)
}

// Lengths of the parts of a summary, in characters.
const (
	saidChars  = 400
	topicChars = 200
)

// orderApplies reports whether an order still applies: an answered question is not part of a deadlock.
func (d *clarifyDecider) orderApplies(reason string) bool {
	return d.waiting() || d.in(schemas.ClarificationAnswered) && reason != schemas.EscalatedDeadlock
}

// reasonIn is the reason for which a question was escalated, with which the ledger's text of the escalation begins, as headline writes it.
func reasonIn(body string) string {
	_, rest, ok := strings.Cut(body, "(")
	reason, _, closed := strings.Cut(rest, ")")
	if _, known := options[reason]; ok && closed && known && strings.HasPrefix(body, "Escalated (") {
		return reason
	}
	return schemas.EscalatedByReply
}

// Because explains in words why a question was escalated, and gives the reason in brackets to search for. If the
// circumstances matter (which cycle, which failure), they are the second line of the escalation's body.
func Because(reason, body string) string {
	why := map[string]string{
		schemas.EscalatedMaxRounds: "a question came after the last round",
		schemas.EscalatedAgent:     "the agent that was asked failed twice",
		schemas.EscalatedStale:     "no answer came in time, nor after the retry",
		schemas.EscalatedStuck:     "it goes in circles",
		schemas.EscalatedDeadlock:  "questions that block wait for each other",
		schemas.EscalatedByReply:   "somebody asked for it",
		schemas.EscalatedTarget:    "the agent that was asked is not there any more",
	}[reason]
	switch reason {
	case schemas.EscalatedAgent, schemas.EscalatedStale, schemas.EscalatedStuck, schemas.EscalatedDeadlock,
		schemas.EscalatedByReply:
		why = cmp.Or(Circumstances(reason, body), why)
	}
	if why == "" {
		return reason
	}
	return why + " (" + reason + ")"
}

// Circumstances returns the line after "Escalated (reason)" in an escalation's body, the second, without its full stop;
// "" if reconcile did not write the body for the reason.
func Circumstances(reason, body string) string {
	lines := strings.SplitN(body, "\n", 3)
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "Escalated ("+reason+"): ") {
		return ""
	}
	return strings.TrimSuffix(lines[1], ".")
}

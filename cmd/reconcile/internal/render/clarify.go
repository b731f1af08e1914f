package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
)

// ClarificationTable writes a table of clarification threads, a row for each, with its topic, status, round and age;
// the last column WHY appears only if one of them has a reason.
func ClarificationTable(w io.Writer, p Palette, list []threads.Thread, now time.Time) error {
	heads := []string{"ID", "ISSUE", "FROM", "TO", "TOPIC", "STATUS", "ROUND", "AGE"}
	why := false
	for i := range list {
		why = why || list[i].Why != ""
	}
	if why {
		heads = append(heads, "WHY")
	}
	t := NewTable(p, heads...)
	for i := range list {
		t.Cells(threadRow(&list[i], now)...)
	}
	return t.Write(w)
}

func threadRow(c *threads.Thread, now time.Time) []Cell {
	const topicWidth = 48
	issue, age, round, status := "-", "-", "-", c.StateWord()
	if c.IssueNumber > 0 {
		issue = "#" + strconv.Itoa(c.IssueNumber)
	}
	if !c.Created.IsZero() {
		age = Age(now.Sub(c.Created.Time))
	}
	if c.MaxRounds > 0 {
		round = fmt.Sprintf("%d/%d", c.Round, c.MaxRounds)
	}
	return []Cell{
		{Text: c.Title()}, {Text: issue}, {Text: c.From}, {Text: c.To}, {Text: Cut(Line(c.Topic), topicWidth)},
		{Text: status, Color: stateColor(status)}, {Text: round}, {Text: age},
		{Text: c.Why},
	}
}

// The layout of a thread: the rule and the text width of the example in AgentX's requirements.
const (
	threadRule  = "-----------------------------------------------"
	threadWidth = 60
	threadTime  = "2006-01-02 15:04" // in UTC
)

// ClarificationThread writes the turns of a clarification thread in the layout of the example in AgentX's requirements,
// followed by its state while it is open. Agents' text is indented, so that it cannot pass for a heading.
func ClarificationThread(w io.Writer, p Palette, c threads.Thread) error {
	t := &clarifyThread{Palette: p, c: &c}
	t.line(2, p.Paint(Bold, Line(fmt.Sprintf("Clarification Thread: %s (%s)", c.Title(), issueWord(c.IssueNumber)))))
	t.line(2, p.Paint(Dim, threadRule))
	for i := range c.Thread {
		if i > 0 {
			t.b.WriteByte('\n')
		}
		t.turn(i)
	}
	if schemas.ClarificationOpen(c.Status) || c.Status == schemas.ClarificationAbandoned {
		t.standing()
	}
	t.line(2, p.Paint(Dim, threadRule))
	_, err := io.WriteString(w, t.b.String())
	return err
}

// clarifyThread is a thread being written.
type clarifyThread struct {
	Palette
	c *threads.Thread
	b strings.Builder
}

func (t *clarifyThread) line(indent int, s string) {
	t.b.WriteString(strings.Repeat(" ", indent))
	t.b.WriteString(s)
	t.b.WriteByte('\n')
}

// turn writes the i-th entry.
func (t *clarifyThread) turn(i int) {
	e := t.c.Thread[i]
	switch e.Type {
	case schemas.TurnResolution:
		t.outcome(Green, "RESOLVED", e.From, e.Timestamp)
		t.text(4, "", e.Body)
	case schemas.TurnEscalation:
		t.outcome(Red, "ESCALATED", e.From, e.Timestamp)
		said, block := escalationOf(t.c, i)
		if said {
			t.text(4, "", e.Body)
		}
		if block != nil {
			t.escalation(block, e.Body)
		}
	case schemas.TurnAnswer:
		t.spoken(Green, "A: ", e, t.c.From)
	default:
		t.spoken(Yellow, "Q: ", e, t.c.To)
	}
}

// spoken writes a question or an answer: "[Round 1] engineer -> architect  (2026-02-26 10:00)" and the text.
func (t *clarifyThread) spoken(color Color, mark string, e schemas.ThreadEntry, to string) {
	head := t.Paint(Blue, fmt.Sprintf("[Round %d]", e.Round)) + " " + Line(e.From) + " -> " + Line(to)
	t.line(2, head+t.at(e.Timestamp))
	t.text(4, t.Paint(color, mark), e.Body)
}

// outcome writes "[RESOLVED] engineer  (2026-02-26 10:05)".
func (t *clarifyThread) outcome(color Color, word, who string, at schemas.Time) {
	t.line(2, t.Paint(color, "["+word+"]")+" "+Line(who)+t.at(at))
}

func (t *clarifyThread) at(when schemas.Time) string {
	if when.IsZero() {
		return ""
	}
	return "  " + t.Paint(Dim, "("+when.UTC().Format(threadTime)+")")
}

// text writes a text with a mark before its first line; further lines are aligned below the first.
func (t *clarifyThread) text(indent int, mark, body string) {
	under := ""
	if mark != "" {
		under = "   "
	}
	for i, line := range wrapText(body, threadWidth) {
		switch {
		case i == 0:
			t.line(indent, mark+line)
		case line == "":
			t.line(0, "")
		default:
			t.line(indent, under+line)
		}
	}
}

// escalation writes the decision that a human has to make.
func (t *clarifyThread) escalation(e *schemas.Escalation, body string) {
	t.label("Topic", e.Topic)
	t.label("Why", clarify.Because(e.Reason, body))
	for _, p := range e.Positions {
		t.label(p.Agent, p.Body)
	}
	if len(e.Options) > 0 {
		t.line(4, "Options:")
	}
	for i, o := range e.Options {
		t.text(6, fmt.Sprintf("%d. ", i+1), o)
	}
	// Not wrapped: it holds a command.
	t.line(4, t.Paint(Bold, "Action:")+" "+Line(e.Action))
}

// label writes "Topic: text", the text's further lines below its first.
func (t *clarifyThread) label(name, text string) {
	for i, line := range wrapText(text, threadWidth) {
		if i == 0 {
			line = t.Paint(Bold, Line(name)+":") + " " + line
		} else {
			line = "  " + line
		}
		t.line(4, line)
	}
}

// standing writes the state of an open or abandoned thread. For an escalated one the last entry states it.
func (t *clarifyThread) standing() {
	c := t.c
	if c.Status == schemas.ClarificationEscalated && lastEscalation(c.Thread) >= 0 {
		return
	}
	word, at, text := c.StateWord(), schemas.Time{}, c.Stands()
	if c.Waiting() {
		at = c.StaleAfter
	}
	if len(c.Thread) > 0 {
		t.b.WriteByte('\n')
	}
	head := t.Paint(stateColor(word), "["+strings.ToUpper(Line(word))+"]") + " " + Line(c.Topic)
	if !at.IsZero() {
		head += "  " + t.Paint(Dim, "(due "+at.UTC().Format(threadTime)+")")
	}
	t.line(2, head)
	t.line(4, Line(text))
}

// lastEscalation returns the index of the last escalation in a thread, or -1.
func lastEscalation(thread []schemas.ThreadEntry) int {
	for i := len(thread) - 1; i >= 0; i-- {
		if thread[i].Type == schemas.TurnEscalation {
			return i
		}
	}
	return -1
}

func threadIndented(lines []string) []string { return chatPrefixed("  ", lines) }

func stampAge(at schemas.Stamp, now time.Time) string {
	if at.IsZero() {
		return none
	}
	return Age(now.Sub(at.Time))
}

// escalationLines returns the decision that a human has to make: the reason, the open question, the positions and the
// options.
func escalationLines(c *settle.Clarified) []string {
	const most = 400 // columns of one text; "reconcile clarify show" has all of it
	e := c.Escalation
	lines := []string{"[ESCALATED] " + c.ClarificationID + ": " + Line(c.Topic),
		"  Why: " + clarify.Because(e.Reason, c.Turn.Body)}
	for i, p := range e.Positions {
		head := "  " + displayName(p.Agent) + ": "
		if i == 0 { // the asking side
			head = "  Open question of " + displayName(p.Agent) + ": "
		}
		lines = append(lines, head+Cut(Line(strings.Join(strings.Fields(p.Body), " ")), most))
	}
	for i, o := range e.Options {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, o))
	}
	return append(lines, "  "+e.Action)
}

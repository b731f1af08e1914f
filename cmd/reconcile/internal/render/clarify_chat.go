package render

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
)

// ClarificationChat writes a thread as Markdown in the form of a chat: "[Engineer -> Architect] Clarification needed
// (CLR-42-001):" and the text, indented by two blanks. An escalation is a block quote.
//
// Agents' text stays Markdown, but cannot break out: an open code fence is closed, HTML is shown as text, a Markdown
// heading as its marks and words, and a line that looks like a heading of the chat is quoted.
func ClarificationChat(w io.Writer, c threads.Thread) error {
	chat := &chat{c: &c}
	for i := range c.Thread {
		chat.turn(i)
	}
	chat.end()
	_, err := io.WriteString(w, strings.Join(chat.parts, "\n"))
	return err
}

// chatTurn writes one turn of a thread as chat in Markdown, as [ClarificationChat] does: its i-th entry.
func chatTurn(w io.Writer, c threads.Thread, i int) error {
	chat := &chat{c: &c}
	chat.turn(i)
	_, err := io.WriteString(w, strings.Join(chat.parts, "\n"))
	return err
}

// chat collects the paragraphs of a thread, each with a final line feed.
type chat struct {
	c     *threads.Thread
	parts []string
}

func (t *chat) add(lines ...string) { t.parts = append(t.parts, strings.Join(lines, "\n")+"\n") }

func (t *chat) turn(i int) {
	e := t.c.Thread[i]
	body := chatBody(e.Body)
	switch e.Type {
	case schemas.TurnQuestion:
		t.add(append([]string{t.asks(e)}, threadIndented(body)...)...)
		if t.routed(i) {
			t.add("  [Routing to " + displayName(t.c.To) + " automatically...]")
		}
	case schemas.TurnResolution:
		t.add(append([]string{t.settles(e)}, threadIndented(body)...)...)
	case schemas.TurnEscalation:
		lines := []string{t.escalated()}
		said, block := escalationOf(t.c, i)
		if said {
			lines = append(append(lines, ""), body...)
		}
		if block != nil {
			lines = append(lines, escalationBlock(block, e.Body)...)
		}
		t.add(quoted(lines)...)
	default:
		t.add(chatFollows("["+displayName(e.From)+"]", body)...)
	}
}

// chatFollows returns a heading and a body, which starts on the heading's line unless that changes its meaning.
func chatFollows(head string, body []string) []string {
	if clarify.FenceOf(body[0]) != "" || strings.HasPrefix(body[0], ">") {
		return append([]string{head}, threadIndented(body)...)
	}
	return append([]string{head + " " + body[0]}, threadIndented(body[1:])...)
}

// settles returns the heading of a resolution: the asker continues with it, others do not.
func (t *chat) settles(e schemas.ThreadEntry) string {
	head := "[" + displayName(e.From) + "] Clarification resolved."
	if e.From == t.c.From {
		head += " Continuing..."
	}
	return head
}

// asks returns the heading of a question.
func (t *chat) asks(e schemas.ThreadEntry) string {
	head := fmt.Sprintf("[%s -> %s] ", displayName(e.From), displayName(t.c.To))
	if e.Round <= 1 {
		return head + "Clarification needed (" + chatLine(t.c.Title()) + "):"
	}
	return head + fmt.Sprintf("Clarification (%s, round %d):", chatLine(t.c.Title()), e.Round)
}

// routed reports whether the hub routed the question of the i-th entry to a program.
func (t *chat) routed(i int) bool {
	if i+1 < len(t.c.Thread) {
		return strings.HasPrefix(t.c.Thread[i+1].Source, "run/")
	}
	return t.c.Waiting() && !t.c.Human
}

// end states what the thread waits for, unless its last entry does.
func (t *chat) end() {
	switch c := t.c; {
	case c.Status == "" && c.Why != "":
		t.add("  [REFUSED: " + chatLine(strings.TrimSuffix(c.Why, ".")) + "]")
	case c.Status == "" || c.Why != "":
		t.add("  [" + chatLine(strings.TrimSuffix(c.Stands(), ".")) + "]")
	case c.Waiting() && c.Human:
		t.add(fmt.Sprintf("  [Waiting for %s to answer: reconcile clarify answer %s TEXT]",
			displayName(c.To), chatLine(c.Title())))
	case c.Status == schemas.ClarificationAbandoned:
		t.add("  [" + displayName(c.From) + " went on without an answer]")
	case c.Status == schemas.ClarificationEscalated && lastEscalation(c.Thread) < 0:
		t.add(quoted([]string{t.escalated(), "", chatLine(c.Stands())})...)
	}
}

func (t *chat) escalated() string {
	return "**[ESCALATED] " + chatLine(t.c.Title()) + ": " + chatLine(t.c.Topic) + "**"
}

// escalationBlock returns the reason, the positions, the options and the human's task, as paragraphs, each after a blank
// line.
func escalationBlock(e *schemas.Escalation, body string) []string {
	lines := []string{"", "Why: " + chatLine(clarify.Because(e.Reason, body))}
	if len(e.Positions) > 0 {
		lines = append(lines, "")
	}
	for _, p := range e.Positions {
		lines = append(lines, chatFollows("- **"+displayName(p.Agent)+"**:", chatBody(p.Body))...)
	}
	if len(e.Options) > 0 {
		lines = append(lines, "", "Options:", "")
	}
	for i, o := range e.Options {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, chatLine(o)))
	}
	return append(lines, "", "**Action needed:** "+chatLine(e.Action))
}

// chatLine returns a text of one line with escaped HTML.
func chatLine(s string) string { return strings.ReplaceAll(Line(s), "<", "&lt;") }

// chatBody returns a text as lines of Markdown, at least one.
func chatBody(s string) []string {
	var out []string
	fence := ""
	for line := range strings.SplitSeq(strings.Trim(Text(s), "\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		switch mark := clarify.FenceOf(line); {
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && clarify.ClosesFence(line, fence):
			fence = ""
		case fence == "":
			line = chatText(line)
		}
		out = append(out, line)
	}
	if fence != "" {
		out = append(out, fence)
	}
	return out
}

// heading finds, in lists and quotations too, the marks that make a heading of their line or of the one before it:
// "## Answer", and a line of dashes or equals signs (CommonMark 0.31.2, 4.2 and 4.3).
var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:[ \t]*(?:>|[-+*][ \t]|[0-9]{1,9}[.)][ \t]))*[ \t]*)(#{1,6}(?:[ \t]|$)|-+$|=+$)`)
})

// chatText escapes HTML in a line of text outside of code spans, and headings; a line that looks like a heading of the chat
// is quoted.
func chatText(line string) string {
	parts := strings.Split(line, "`")
	for i := range parts {
		if i%2 == 0 || i == len(parts)-1 {
			parts[i] = strings.ReplaceAll(parts[i], "<", "&lt;")
		}
	}
	line = heading().ReplaceAllString(strings.Join(parts, "`"), `$1\$2`)
	if strings.HasPrefix(strings.TrimLeft(line, " \t"), "[") {
		line = "> " + strings.TrimLeft(line, " \t")
	}
	return line
}

// chatPrefixed returns the lines with a prefix, without trailing blanks.
func chatPrefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(prefix+line, " ")
	}
	return out
}

// escalationOf returns what to show of the escalation in the i-th entry: said is set unless its text only repeats the
// block, and block is that of the last escalation.
func escalationOf(c *threads.Thread, i int) (said bool, block *schemas.Escalation) {
	if c.Escalation == nil || i != lastEscalation(c.Thread) {
		return true, nil
	}
	e := c.Escalation
	return e.Reason == schemas.EscalatedByReply && clarify.Circumstances(e.Reason, c.Thread[i].Body) == "", e
}

// mostTalk is the maximum number of lines of one turn.
const mostTalk = 5

// talkLines returns the lines of a clarification's turn as chat, such as "[Engineer -> Architect] Clarification needed
// (CLR-42-001):" and the beginning of the question. "reconcile clarify show" prints all of it.
func talkLines(c *settle.Clarified) []string {
	switch {
	case c.Turn == nil:
		return []string{"[" + displayName(c.ToAgent) + "] " + c.ClarificationID + ": no answer in time"}
	case c.Escalation != nil:
		return escalationLines(c)
	}
	var b strings.Builder
	shown := threads.Thread{IssueNumber: c.IssueNumber, Thread: []schemas.ThreadEntry{*c.Turn},
		Clarification: schemas.Clarification{ID: c.ClarificationID, From: c.FromAgent, To: c.ToAgent, Status: c.Status},
		Human:         true} // the agent's run reports the routing
	if err := chatTurn(&b, shown, 0); err != nil {
		return nil // a strings.Builder does not fail
	}
	// The chat is Markdown, which escapes <; plain text does not.
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(b.String(), "&lt;", "<")), "\n")
	if len(lines) > mostTalk {
		lines = append(lines[:mostTalk], "  …")
	}
	return lines
}

// displayName returns the display name of an agent for a line of chat: product-manager is Product Manager.
func displayName(agent string) string { return chatLine(clarify.DisplayName(agent)) }

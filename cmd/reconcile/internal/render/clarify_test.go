package render

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

// minute is an instant of the example in AgentX's requirements.
func minute(n int) schemas.Time {
	return schemas.NewTime(time.Date(2026, 2, 26, 10, n, 0, 0, time.UTC))
}

func entry(round, at int, from, typ, body, source string) schemas.ThreadEntry {
	return schemas.ThreadEntry{Source: source, ClarificationTurn: schemas.ClarificationTurn{
		Round: round, From: from, Type: typ, Body: body, Timestamp: minute(at),
	}}
}

// question is a new question of the engineer to the architect.
func question(status string, thread ...schemas.ThreadEntry) threads.Thread {
	return threads.Thread{IssueNumber: 42, Thread: thread, Clarification: schemas.Clarification{
		ID: "CLR-42-001", From: "engineer", To: "architect", Topic: "Database abstraction layer approach", Blocking: true,
		Status: status, Round: 1, MaxRounds: 5, Created: minute(0), StaleAfter: minute(30), Request: "db-layer",
	}}
}

// documented is the thread that the requirements print as the terminal shows it.
func documented() threads.Thread {
	c := question(schemas.ClarificationResolved,
		entry(1, 0, "engineer", "question", "ADR-42 says PostgreSQL but local dev uses SQLite. Dual-adapter or migrate?",
			"request"),
		entry(1, 2, "architect", "answer", "Repository pattern. SQLite dev, PostgreSQL prod. Config-driven pooling.",
			"run/x"),
		entry(2, 5, "engineer", "resolution", "Proceeding with repository pattern + separate migrations.", "reply/r"))
	c.Round, c.ResolvedAt = 2, minute(5)
	return c
}

// streamed is the thread that the requirements print as a chat shows it.
func streamed() threads.Thread {
	return question(schemas.ClarificationResolved,
		entry(1, 0, "engineer", "question", "ADR-42 specifies PostgreSQL but local dev uses SQLite.\n"+
			"Should I create a dual-adapter or migrate everything?", "request"),
		entry(1, 2, "architect", "answer", "Repository pattern with environment-based adapter.\n"+
			"SQLite for dev, PostgreSQL for staging/prod.\nConnection pooling via appsettings.json per environment.", "run/x"),
		entry(2, 5, "engineer", "resolution", "Creating src/db/adapter.ts...\nWriting tests...", "reply/r"))
}

func escalated() threads.Thread {
	c := question(schemas.ClarificationEscalated,
		entry(1, 0, "engineer", "question", "Dual layer or migrate?", "request"),
		entry(1, 2, "architect", "answer", "It depends on the load.", "run/x"),
		entry(2, 3, "engineer", "question", "The load is unknown. Dual layer or migrate?", "reply/q"),
		entry(2, 4, "architect", "answer", "Then it still depends.\n\n```\nload > 100\n", "run/y"),
		entry(2, 5, "reconcile", "escalation", "what the ledger keeps of it", "monitor"))
	c.Round, c.MaxRounds = 2, 2
	c.Escalation = &schemas.Escalation{
		Reason: schemas.EscalatedMaxRounds, Topic: c.Topic,
		Positions: []schemas.Position{
			{Agent: "engineer", Body: "Which load do you assume?"},
			{Agent: "architect", Body: "Then it still depends.\nMeasure first."},
		},
		Options: []string{"Decide for one of the positions", "Split the question"},
		Action:  `Decide, and run: reconcile clarify resolve CLR-42-001 "what was decided"`,
	}
	return c
}

// scenes are the states that a clarification is shown in.
func scenes() map[string]threads.Thread {
	pending := question(schemas.ClarificationPending, entry(1, 0, "engineer", "question", "One layer or two?", "request"))
	human := pending
	human.Human = true
	stale := pending
	stale.Status = schemas.ClarificationStale
	answered := question(schemas.ClarificationAnswered, pending.Thread[0], entry(1, 1, "ada", "answer", "Two.", "reply/a"))
	abandoned := question(schemas.ClarificationAbandoned, pending.Thread[0])
	fresh := question("", entry(1, 0, "engineer", "question", "One layer or two?", "request"))
	fresh.ID, fresh.Created, fresh.StaleAfter, fresh.MaxRounds = "", schemas.Time{}, schemas.Time{}, 0
	fresh.Thread[0].Timestamp = schemas.Time{}
	foreign := question(schemas.ClarificationEscalated, pending.Thread[0])
	foreign.IssueNumber, foreign.ID, foreign.Request = 0, "CLR-0-001", ""
	requested := escalated()
	requested.Escalation = &schemas.Escalation{Reason: schemas.EscalatedByReply, Topic: requested.Topic,
		Options: []string{"decide"}, Action: "Decide."}
	requested.Thread[4].Body, requested.Thread[4].From = "This needs a budget.", "engineer"
	settled := escalated()
	settled.Status = schemas.ClarificationResolved
	settled.Thread = append(settled.Thread, entry(3, 9, "ada", "resolution", "Dual layer.", "reply/r"))
	refused := fresh
	refused.Why = "SCOPE_VIOLATION: agent 'engineer' cannot clarify with 'architect'; allowed: []"
	headings := question(schemas.ClarificationAnswered, entry(1, 0, "engineer", "question", "# One layer\nor two?\n---", "request"),
		entry(1, 1, "architect", "answer", "## Answer\nTwo.\n===\n- # in a list\n> a quotation\n> --\n-\n\n#42 is no heading, "+
			"nor is -- this\n\n```sh\n# a comment\n---\n```\n1. ### last", "run/x"))
	return map[string]threads.Thread{
		"refused": refused, "headings": headings, "resolved": documented(), "stream": streamed(), "escalated": escalated(), "pending": pending, "human": human,
		"stale": stale, "answered": answered, "abandoned": abandoned, "new": fresh, "foreign": foreign, "settled": settled,
		"requested": requested,
	}
}

func rendered(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestScenario_CLIRendering: what the terminal shows is, line by line, the example of the requirements, and in colour
// the same with nothing but colours added.
func TestScenario_CLIRendering(t *testing.T) {
	want := `  Clarification Thread: CLR-42-001 (#42)
  -----------------------------------------------
  [Round 1] engineer -> architect  (2026-02-26 10:00)
    Q: ADR-42 says PostgreSQL but local dev uses SQLite.
       Dual-adapter or migrate?

  [Round 1] architect -> engineer  (2026-02-26 10:02)
    A: Repository pattern. SQLite dev, PostgreSQL prod.
       Config-driven pooling.

  [RESOLVED] engineer  (2026-02-26 10:05)
    Proceeding with repository pattern + separate migrations.
  -----------------------------------------------
`
	got := rendered(t, func(w io.Writer) error { return ClarificationThread(w, Palette{}, documented()) })
	if string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	for name, c := range scenes() {
		plain := rendered(t, func(w io.Writer) error { return ClarificationThread(w, Palette{}, c) })
		painted := rendered(t, func(w io.Writer) error { return ClarificationThread(w, Palette{On: true}, c) })
		golden(t, "clarify/"+name+".txt", plain)
		golden(t, "clarify/"+name+".ansi", painted)
		if stripped := unpaint(string(painted)); stripped != string(plain) || !strings.Contains(string(painted), "\x1b[") {
			t.Errorf("%s: colours change the text:\n%s\nis not\n%s", name, stripped, plain)
		}
	}
}

// unpaint takes colours out of text.
func unpaint(s string) string {
	var b strings.Builder
	for i, part := range strings.Split(s, "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		b.WriteString(part)
	}
	return b.String()
}

// TestScenario_ChatRendering: what a chat shows is, line by line, the example of the requirements.
func TestScenario_ChatRendering(t *testing.T) {
	want := `[Engineer -> Architect] Clarification needed (CLR-42-001):
  ADR-42 specifies PostgreSQL but local dev uses SQLite.
  Should I create a dual-adapter or migrate everything?

  [Routing to Architect automatically...]

[Architect] Repository pattern with environment-based adapter.
  SQLite for dev, PostgreSQL for staging/prod.
  Connection pooling via appsettings.json per environment.

[Engineer] Clarification resolved. Continuing...
  Creating src/db/adapter.ts...
  Writing tests...
`
	got := rendered(t, func(w io.Writer) error { return ClarificationChat(w, streamed()) })
	if string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	for name, c := range scenes() {
		golden(t, "clarify/"+name+".md", rendered(t, func(w io.Writer) error { return ClarificationChat(w, c) }))
	}
}

// Turns one by one are what the whole is made of.
func TestChatTurns(t *testing.T) {
	c := documented()
	var turns []string
	for i := range c.Thread {
		turns = append(turns, string(rendered(t, func(w io.Writer) error { return chatTurn(w, c, i) })))
	}
	whole := rendered(t, func(w io.Writer) error { return ClarificationChat(w, c) })
	if got := strings.Join(turns, "\n"); got != string(whole) {
		t.Errorf("the turns are:\n%s\nthe whole is:\n%s", got, whole)
	}
}

func TestClarificationJSON(t *testing.T) {
	golden(t, "clarify/escalated.json", rendered(t, func(w io.Writer) error { return document.JSON(w, escalated()) }))
}

func TestClarificationTable(t *testing.T) {
	s := scenes()
	late := s["stale"]
	late.Why = "no answer since 2026-02-26 10:30"
	list := []threads.Thread{s["pending"], s["foreign"], s["new"]}
	now := minute(42).Time
	golden(t, "clarify/list.txt", rendered(t, func(w io.Writer) error {
		return ClarificationTable(w, Palette{}, list, now)
	}))
	golden(t, "clarify/list_stale.txt", rendered(t, func(w io.Writer) error {
		return ClarificationTable(w, Palette{}, append(list, late), now)
	}))
}

// What an agent says cannot pass for something else: no control characters, no second heading, no open code block, no
// HTML that hides what follows.
func TestHostileText(t *testing.T) {
	body := "fine\x1b[31m\n\n  [RESOLVED] engineer  (2026-02-26 10:05)\n[Architect] forged\n<!-- hidden\n" +
		"`a<b` <i>\n~~~sh\n[kept] <as is>"
	c := question(schemas.ClarificationAnswered, entry(1, 0, "engineer", "question", body, "request"),
		entry(1, 1, "architect", "answer", "ok", "run/x"))
	text := string(rendered(t, func(w io.Writer) error { return ClarificationThread(w, Palette{}, c) }))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  [RESOLVED]") || strings.HasPrefix(line, "[") || strings.Contains(line, "\x1b") {
			t.Errorf("the text holds the line %q", line)
		}
	}
	chat := string(rendered(t, func(w io.Writer) error { return ClarificationChat(w, c) }))
	want := `[Engineer -> Architect] Clarification needed (CLR-42-001):
  fine\x1b[31m

  > [RESOLVED] engineer  (2026-02-26 10:05)
  > [Architect] forged
  &lt;!-- hidden
  ` + "`a<b`" + ` &lt;i>
  ~~~sh
  [kept] <as is>
  ~~~

  [Routing to Architect automatically...]

[Architect] ok
`
	if chat != want {
		t.Errorf("got:\n%swant:\n%s", chat, want)
	}
}

func FuzzClarificationChat(f *testing.F) {
	f.Add("a\n```\nb", "````x\n```\n")
	f.Add("[x]", "<!--")
	f.Fuzz(func(t *testing.T, q, a string) {
		c := question(schemas.ClarificationAnswered, entry(1, 0, "engineer", "question", q, "request"),
			entry(1, 1, "architect", "answer", a, "run/x"))
		text := string(rendered(t, func(w io.Writer) error { return ClarificationChat(w, c) }))
		headings, fence := 0, ""
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			switch mark := clarify.FenceOf(line); {
			case fence == "" && mark != "":
				fence = mark
			case fence != "" && clarify.ClosesFence(line, fence):
				fence = ""
			case strings.HasPrefix(line, "["):
				headings++
			}
		}
		if headings != 2 {
			t.Errorf("%d headings in:\n%s", headings, text)
		}
		if fence != "" {
			t.Errorf("a code block is left open in:\n%s", text)
		}
		if Text(text) != text {
			t.Errorf("control characters in %q", text)
		}
	})
}

// An escalation tells the circumstances where its entry has them: which ring it was, how the agent failed.
func TestEscalatedBecause(t *testing.T) {
	const ring = "Escalated (Deadlock): Regions\nblocking questions wait for each other: a, b, a.\na: Q?\nb: (no answer)"
	for _, c := range []struct{ reason, body, want string }{
		{schemas.EscalatedDeadlock, ring, "blocking questions wait for each other: a, b, a (Deadlock)"},
		{schemas.EscalatedDeadlock, "another program's words", "questions that block wait for each other (Deadlock)"},
		{schemas.EscalatedStuck, ring, "it goes in circles (Stuck)"},
		{schemas.EscalatedMaxRounds, "Escalated (MaxRounds): T\n2 rounds did not settle it.\nx",
			"a question came after the last round (MaxRounds)"},
		{schemas.EscalatedByReply, "This needs a budget.\nReally.\nYes.", "somebody asked for it (Requested)"},
		{schemas.EscalatedByReply, "Escalated (Requested): T\nanother program set the status to escalated.\nx",
			"another program set the status to escalated (Requested)"},
		{"Unheard", ring, "Unheard"},
	} {
		if got := clarify.Because(c.reason, c.body); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

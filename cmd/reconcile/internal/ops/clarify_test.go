package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var asked = schemas.NewTime(time.Date(2026, 2, 26, 10, 0, 0, 0, time.UTC))

// record is a record of a ledger.
func record(issue, seq int, status, request string) schemas.Clarification {
	return schemas.Clarification{
		ID: clarify.FormatID(issue, seq), From: "engineer", To: "architect", Topic: "Topic", Blocking: true,
		Status: status, Round: 1, MaxRounds: 5, Created: asked, StaleAfter: schemas.NewTime(asked.Add(30 * time.Minute)),
		Thread: []schemas.ClarificationTurn{
			{Round: 1, From: "engineer", Type: schemas.TurnQuestion, Body: "One or two?", Timestamp: asked},
		},
		Request: request,
	}
}

func ledger(t *testing.T, issue int, records ...schemas.Clarification) *state.Ledger {
	t.Helper()
	b, err := json.Marshal(schemas.Ledger{IssueNumber: issue, Clarifications: records})
	if err != nil {
		t.Fatal(err)
	}
	l, err := state.ParseLedger(fmt.Sprintf("state/clarifications/issue-%d.json", issue), b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// agentEntry is an agent that a person is.
func agentEntry(t *testing.T, name string, asks ...string) *state.Entry {
	t.Helper()
	src := "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: " + name + "}\n" +
		"spec: {runner: {human: {}}, canClarify: [" + strings.Join(asks, ", ") + "]}\n"
	d := schemas.NewDecoder(controllers.Schemas(), 0).Decode("specs/agents/"+name+".yaml", []byte(src))
	if d.Object == nil {
		t.Fatal(d.Problems)
	}
	return &state.Entry{Ref: d.Ref, Object: d.Object}
}

// request is a request and its status; a status without an id and a condition was not looked at yet.
func request(t *testing.T, name string, issue int, st *schemas.ClarificationRequestStatus) *state.Entry {
	t.Helper()
	src := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: ClarificationRequest\nmetadata: {name: %s}\n"+
		"spec: {issue: %d, from: engineer, to: architect, topic: Topic, question: \"One or two?\", blocking: true}\n",
		name, issue)
	d := schemas.NewDecoder(controllers.Schemas(), 0).Decode("specs/clarificationrequests/"+name+".yaml", []byte(src))
	if d.Object == nil {
		t.Fatal(d.Problems)
	}
	e := &state.Entry{Ref: d.Ref, Object: d.Object}
	if st != nil {
		e.SetStatus(st)
	}
	return e
}

func refusedWith(message string) *schemas.ClarificationRequestStatus {
	st := &schemas.ClarificationRequestStatus{}
	st.Conditions = []schemas.Condition{
		{Type: schemas.Ready, Status: schemas.False, Message: message}, {Type: schemas.Stalled, Status: schemas.True, Message: message},
	}
	return st
}

// town is a tree with threads of all sorts: recorded ones of ours and of others, and requests that are not on record.
func town(t *testing.T) *state.Tree {
	own := record(42, 1, schemas.ClarificationEscalated, "db-layer")
	foreign := schemas.ClarificationTurn{Round: 1, From: "x", Type: schemas.TurnAnswer, Body: "foreign"}
	own.Thread = append(own.Thread, foreign)
	st := &schemas.ClarificationRequestStatus{ID: "CLR-42-001", Summary: "in short",
		Escalation: &schemas.Escalation{Reason: schemas.EscalatedStuck},
		Thread:     []schemas.ThreadEntry{{ClarificationTurn: own.Thread[0], Source: "request"}}}
	refusal := request(t, "clr-53-001", 53, refusedWith("not for you"))
	schemas.SpecAs[*schemas.ClarificationRequestSpec](refusal.Object).Imported = "CLR-53-001"
	return state.NewTree(controllers.Schemas(), nil, nil, agentEntry(t, "engineer", "architect"), agentEntry(t, "architect"), refusal,
		request(t, "db-layer", 42, st), request(t, "fresh", 42, nil), request(t, "refused", 42, refusedWith("not allowed")),
		request(t, "elsewhere", 7, nil),
	).WithLedgers(
		ledger(t, 42, own, record(42, 2, schemas.ClarificationResolved, ""),
			record(42, 1000, schemas.ClarificationPending, "gone")),
		ledger(t, 0, record(0, 1, schemas.ClarificationStale, "")),
		ledger(t, 53, record(53, 1, schemas.ClarificationPending, "")),
		ledger(t, 9, record(9, 1, schemas.ClarificationAbandoned, "")),
	)
}

func titles(threads []threads.Thread) string {
	var out []string
	for _, m := range threads {
		out = append(out, m.Title())
	}
	return strings.Join(out, " ")
}

func TestThreadsOf(t *testing.T) {
	tree := town(t)
	for _, c := range []struct {
		issue  int
		active bool
		want   string
	}{
		{-1, true, "CLR-0-001 elsewhere CLR-42-001 CLR-42-1000 fresh CLR-53-001"},
		{-1, false, "CLR-0-001 elsewhere CLR-9-001 CLR-42-001 CLR-42-002 CLR-42-1000 fresh refused CLR-53-001"},
		{42, false, "CLR-42-001 CLR-42-002 CLR-42-1000 fresh refused"},
		{0, false, "CLR-0-001"},
		{5, false, ""},
	} {
		if got := titles(threads.All(tree, c.issue, c.active)); got != c.want {
			t.Errorf("issue %d, active %t: %q, want %q", c.issue, c.active, got, c.want)
		}
	}
}

// A record shows what the status of its request adds: sources, and what a human has to know.
func TestThreadOfRecord(t *testing.T) {
	m, err := findThread(town(t), "CLR-42-001")
	if err != nil {
		t.Fatal(err)
	}
	if m.Entry == nil || m.Escalation == nil || m.Summary != "in short" || m.IssueNumber != 42 {
		t.Errorf("the status is not seen: %+v", m)
	}
	if len(m.Thread) != 2 || m.Thread[0].Source != "request" || m.Thread[1].Source != "ledger" {
		t.Errorf("thread %+v", m.Thread)
	}
}

func TestFindThread(t *testing.T) {
	tree := town(t)
	for word, want := range map[string]string{
		"CLR-42-001": "CLR-42-001", "clr-42-1": "CLR-42-001", "db-layer": "CLR-42-001", "Clr-42-1000": "CLR-42-1000",
		"fresh": "fresh", "CLR-0-01": "CLR-0-001", "refused": "refused",
	} {
		if m, err := findThread(tree, word); err != nil || m.Title() != want {
			t.Errorf("%s: %s, %v", word, m.Title(), err)
		}
	}
	for word, hint := range map[string]string{
		"CLR-42-003": `did you mean "CLR-42-001"?`, "CLR-5-001": "nothing was asked about issue 5",
		"db-leyer": `"db-layer"`, "nothing-like-it": `"reconcile clarify" lists`, "CLR-42-": `"CLR-42-001"`,
		"": "NOT_FOUND", "CLR-042-001": "NOT_FOUND",
	} {
		_, err := findThread(tree, word)
		if !errors.Is(err, &clarify.Error{Kind: clarify.NotFound}) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v; want %s", word, err, hint)
		}
	}
}

// The commands offer exactly what the picture of the states has an edge for.
func TestRepliesFollowThePicture(t *testing.T) {
	leads := map[string]string{
		schemas.TurnAnswer: schemas.ClarificationAnswered, schemas.TurnQuestion: schemas.ClarificationPending,
		schemas.TurnResolution: schemas.ClarificationResolved, schemas.TurnEscalation: schemas.ClarificationEscalated,
		schemas.TurnAbandonment: schemas.ClarificationAbandoned,
	}
	for _, r := range ReplyVerbs {
		for _, from := range []string{"pending", "answered", "resolved", "stale", "escalated", "abandoned"} {
			legal := clarify.Legal(from, leads[r.Type])
			switch {
			case r.Type == schemas.TurnAnswer && from == schemas.ClarificationStale:
				legal = true // by way of pending: decision 13
			case r.Type == schemas.TurnQuestion && from == schemas.ClarificationStale:
				legal = false // that edge is the retry's
			}
			if got := slices.Contains(r.States, from); got != legal {
				t.Errorf("%s while %s: offered %t, possible %t", r.Name, from, got, legal)
			}
		}
	}
}

func TestReplyCheck(t *testing.T) {
	tree := town(t)
	find := func(word string) *threads.Thread {
		m, err := findThread(tree, word)
		if err != nil {
			t.Fatal(err)
		}
		return &m
	}
	command := func(name string) *ReplyVerb {
		return &ReplyVerbs[slices.IndexFunc(ReplyVerbs, func(r ReplyVerb) bool { return r.Name == name })]
	}
	last := find("CLR-42-001")
	last.Round = last.MaxRounds
	open := find("CLR-42-001")
	open.Status = schemas.ClarificationPending
	for _, c := range []struct {
		m    *threads.Thread
		verb string
		from string
		body string
		want string
	}{
		{find("CLR-0-001"), "answer", "ada", "Two.", ""},
		{find("CLR-0-001"), "resolve", "ada", "Two.", "CLR-0-001 is stale; to resolve it must be answered or escalated"},
		{find("CLR-42-1000"), "answer", "ada", "Two.", "CLR-42-1000 cannot be changed: request \"gone\" is not in the tree"},
		{find("CLR-53-001"), "answer", "ada", "Two.", "CLR-53-001 cannot be changed: not for you"},
		{find("CLR-42-002"), "escalate", "ada", "x", "CLR-42-002 is resolved; to escalate it must be pending, answered or "},
		{find("fresh"), "abandon", "ada", "x", ""},
		{find("fresh"), "resolve", "ada", "x", "fresh is not taken by a run yet"},
		{find("refused"), "answer", "ada", "x", "refused was not taken: not allowed"},
		{last, "question", "ada", "x", "MAX_ROUNDS_EXCEEDED: CLR-42-001 reached max rounds (5)"},
		{last, "resolve", "ada", "x", ""},
		{open, "answer", "architect", "One or two?", "CLR-42-001 was not changed: the answer of architect only restates"},
		{open, "answer", "architect", "Two.", ""},
		{open, "answer", "engineer", "Two.", "SCOPE_VIOLATION: agent 'engineer' cannot answer CLR-42-001"},
		{open, "abandon", "architect", "x", "SCOPE_VIOLATION: an abandonment of agent architect cannot be taken"},
	} {
		r := command(c.verb)
		err := r.check(tree, c.m, &schemas.ReplySpec{Type: r.Type, From: c.from, Body: c.body})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s by %s: %v; want %q", c.verb, c.m.Title(), c.from, err, c.want)
		}
	}
}

// Names are names of objects whatever is asked, the same for the same question, and differ where anything does.
func TestRequestName(t *testing.T) {
	base := schemas.ClarificationRequestSpec{Issue: 42, From: "a", To: "b", Topic: "Database: 1 or 2?", Question: "q"}
	seen := map[string]bool{}
	for i, change := range []func(*schemas.ClarificationRequestSpec){
		func(*schemas.ClarificationRequestSpec) {},
		func(s *schemas.ClarificationRequestSpec) { s.Issue = 0 },
		func(s *schemas.ClarificationRequestSpec) { s.Topic = strings.Repeat("long topic ", 18) },
		func(s *schemas.ClarificationRequestSpec) { s.Topic = "数据库" },
		func(s *schemas.ClarificationRequestSpec) { s.Topic = "con" },
		func(s *schemas.ClarificationRequestSpec) { s.Question = "r" },
		func(s *schemas.ClarificationRequestSpec) { s.Blocking = true },
		func(s *schemas.ClarificationRequestSpec) { s.Artifacts = []string{"x"} },
		func(s *schemas.ClarificationRequestSpec) { s.Run = "dags/d/n-0123456789abcdef-1" },
		func(s *schemas.ClarificationRequestSpec) { s.Run = "dags/d/m-0123456789abcdef-1" },
	} {
		spec := base
		change(&spec)
		name := requestName(&spec)
		if err := schemas.CheckName(name); err != nil || seen[name] || name != requestName(&spec) {
			t.Errorf("%d: %q, %v, seen %t", i, name, err, seen[name])
		}
		seen[name] = true
	}
	again := base
	again.Run = "dags/d/n-fedcba9876543210-7"
	if !seen[requestName(&again)] {
		t.Error("a later run of the same node asks the same question under another name")
	}
}

func TestReplyName(t *testing.T) {
	long := threads.Thread{Entry: &state.Entry{}}
	long.Request = strings.Repeat("a", 56) + "-------"
	foreign := threads.Thread{}
	foreign.ID = "CLR-42-001"
	seen := map[string]bool{}
	for _, m := range []*threads.Thread{&long, &foreign} {
		for _, r := range ReplyVerbs {
			for m.Round = 1; m.Round < 3; m.Round++ {
				name := replyName(m, &schemas.ReplySpec{Type: r.Type, From: "ada", Body: "x"}, r.letter, m.Round)
				if err := schemas.CheckName(name); err != nil || seen[name] {
					t.Errorf("%q: %v, seen %t", name, err, seen[name])
				}
				seen[name] = true
			}
		}
	}
}

func TestSameTask(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"dags/d/n-0123456789abcdef-1", "dags/d/n-0123456789abcdef-12", true},
		{"dags/d/n-0123456789abcdef-1", "dags/d/n-0123456789abcdee-1", false},
		{"dags/d/n-0123456789abcdef-1", "dags/d/m-0123456789abcdef-1", false},
		{"", "", false},
	} {
		if got := sameTask(c.a, c.b); got != c.want {
			t.Errorf("sameTask(%q, %q) = %t", c.a, c.b, got)
		}
	}
}

func TestTroubled(t *testing.T) {
	tree := town(t)
	early, late := asked.Add(time.Minute), asked.Add(time.Hour)
	var got []string
	for _, c := range threads.Troubled(tree, threads.All(tree, -1, true), early) {
		got = append(got, c.Title())
	}
	if want := []string{"CLR-0-001", "CLR-42-001"}; !slices.Equal(got, want) {
		t.Errorf("early: %q, want %q", got, want)
	}
	if list := threads.Troubled(tree, threads.All(tree, -1, true), late); len(list) != 4 {
		t.Errorf("late: %d in trouble, want 4", len(list))
	}
}

// TestUnreadableTexts: what is not UTF-8 is a bad request: it is neither changed nor cut.
func TestUnreadableTexts(t *testing.T) {
	for want, q := range map[string]AskRequest{
		"topic is not UTF-8":    {From: "engineer", To: "architect", Topic: "T\xff", Question: "Q"},
		"question is not UTF-8": {From: "engineer", To: "architect", Topic: "T", Question: "Q\xff"},
		"to is missing":         {From: "engineer", Topic: "T", Question: "Q"},
	} {
		env := Env{Tree: tree.Config{Getenv: func(string) string { return "" }}}
		env.Caller.Getenv = env.Tree.Getenv
		if _, err := Ask(t.Context(), env, q); CodeOf(err) != BadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

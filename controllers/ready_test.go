package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// readySim is a tree with two people, a program, and two sessions of different priority.
func readySim(t testing.TB) *sim {
	s := newSim(t)
	s.put("specs/agents/lead.yaml", specText("Agent", "lead", "role: architect\nrunner: {human: {}}"))
	s.put("specs/agents/pair.yaml", specText("Agent", "pair", "role: engineer\ncanClarify: [lead, bot]\nrunner: {human: {}}"))
	s.put("specs/agents/bot.yaml", specText("Agent", "bot", "canClarify: [lead, pair]\nrunner: {command: {argv: [bot]}}"))
	s.put("specs/sessions/slow.yaml", specText("Session", "slow", "issue: 7\npriority: low"))
	s.put("specs/sessions/urgent.yaml", specText("Session", "urgent", "issue: 42\npriority: high"))
	s.put("specs/dags/late.yaml", specText("DAG", "late", `session: slow
nodes:
  - {name: draft, agent: pair, prompt: "Write the draft.\nAll of it."}
  - {name: first, agent: lead, prompt: Look at it first., priority: critical}
  - {name: build, run: [make]}
  - {name: publish, run: [publish], needs: [build]}`))
	s.put("specs/dags/soon.yaml", specText("DAG", "soon", `session: urgent
nodes:
  - {name: review, agent: lead, prompt: Review.}
  - {name: implement, agent: pair, prompt: Implement.}`))
	return s
}

func specText(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec:\n  %s\n", kind, name,
		strings.ReplaceAll(spec, "\n", "\n  "))
}

// ledger makes the ledger of an issue; records without an id are numbered, and get what every record has.
func ledger(t testing.TB, issue int, records ...schemas.Clarification) *state.Ledger {
	t.Helper()
	for i := range records {
		if records[i].ID == "" {
			records[i].ID = fmt.Sprintf("CLR-%d-%03d", issue, i+1)
		}
	}
	data, err := json.Marshal(schemas.Ledger{IssueNumber: issue, Clarifications: records})
	if err != nil {
		t.Fatal(err)
	}
	l, err := state.ParseLedger(fmt.Sprintf("state/clarifications/issue-%d.json", issue), data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// asked is a blocking question of the given age that waits for its answer.
func (s *sim) asked(from, to string, age time.Duration) schemas.Clarification {
	return schemas.Clarification{
		From: from, To: to, Topic: "Pooling", Blocking: true, Status: schemas.ClarificationPending, Round: 1, MaxRounds: 5,
		Created: schemas.NewTime(s.now.Add(-age)),
	}
}

// lines are the items as name, state and what blocks them.
func lines(items []work.Item) []string {
	var out []string
	for _, it := range items {
		line := fmt.Sprintf("%s #%d %s %s", it.Name, it.Issue, it.State, it.Reason)
		if it.Blocked != "" {
			line += " " + it.Blocked
		}
		if it.Claim != nil {
			line += " taken by " + it.Claim.By
		}
		out = append(out, line)
	}
	return out
}

func wantLines(t *testing.T, items []work.Item, want ...string) {
	t.Helper()
	if got := lines(items); !slices.Equal(got, want) {
		t.Errorf("items:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestReadyOrder lists tasks of people and what waits for a place, by priority, session, issue and name, and neither
// what waits for other nodes nor what is done.
func TestReadyOrder(t *testing.T) {
	s := readySim(t)
	s.settle()
	items := work.Ready(s.tree(), s.now, nil)
	wantLines(t, items,
		"dag/late/first #7 ready WaitsForPerson",
		"dag/soon/implement #42 ready WaitsForPerson",
		"dag/soon/review #42 ready WaitsForPerson",
		"dag/late/build #7 queued WaitsForPlace",
		"dag/late/draft #7 ready WaitsForPerson")
	draft := items[4]
	if draft.Agent != "pair" || draft.Task != "Write the draft." || draft.Session != "slow" || draft.Priority != "low" {
		t.Errorf("the draft is %+v", draft)
	}
}

// TestReadyBackOff tells when a failed node is tried again.
func TestReadyBackOff(t *testing.T) {
	s := newSim(t)
	s.put("specs/sessions/a.yaml", specText("Session", "a", "{}"))
	s.put("specs/dags/a.yaml", specText("DAG", "a",
		"session: a\nnodes: [{name: flaky, run: [x], retry: {limit: 1, backoff: 30s}}]"))
	s.settle()
	e, _ := s.find("a", "flaky")
	s.start(e)
	s.finish("a", "flaky", schemas.OutcomeFailed, func(*schemas.Run) {})
	s.settle()
	items := work.Ready(s.tree(), s.now, nil)
	wantLines(t, items, "dag/a/flaky #0 queued BackOff")
	if want := s.now.Add(30 * time.Second); !items[0].Again.Equal(want) {
		t.Errorf("looked at again at %s, want %s", items[0].Again, want)
	}
}

// TestReadyQuestions lists questions that wait for a person, and marks what is blocked: the asker's tasks on the issue,
// or its work on it where there are none. A question that does not block blocks nothing.
func TestReadyQuestions(t *testing.T) {
	s := readySim(t)
	s.settle()
	mild := s.asked("pair", "lead", time.Minute)
	mild.Blocking = false
	escalated := s.asked("bot", "pair", time.Hour)
	escalated.Status = schemas.ClarificationEscalated
	settled := s.asked("bot", "pair", time.Hour)
	settled.Status = schemas.ClarificationResolved
	answered := s.asked("bot", "lead", time.Hour)
	answered.Status = schemas.ClarificationAnswered
	orphan := s.asked("pair", "lead", time.Minute)
	orphan.Request = "removed"
	tree := s.tree().WithLedgers(
		ledger(t, 42, s.asked("pair", "bot", 2*time.Minute), s.asked("pair", "lead", time.Minute), answered),
		ledger(t, 7, mild, settled),
		ledger(t, 9, escalated, orphan))
	wantLines(t, work.Ready(tree, s.now, nil),
		"dag/late/first #7 ready WaitsForPerson",
		"CLR-42-002 #42 ready Pending",
		"dag/soon/implement #42 blocked WaitsForAnswer BLOCKED: Clarification CLR-42-001 pending from bot",
		"dag/soon/review #42 ready WaitsForPerson",
		"CLR-9-001 #9 ready Escalated",
		"agent/bot #9 blocked Escalated BLOCKED: Clarification CLR-9-001 escalated, waits for a human",
		"CLR-7-001 #7 ready Pending",
		"dag/late/build #7 queued WaitsForPlace",
		"dag/late/draft #7 ready WaitsForPerson")
}

// TestReadyAskingNode marks a node by the question that its run asked, says when its time is over, and by the
// escalation once there is one, which any person can decide.
func TestReadyAskingNode(t *testing.T) {
	s := readySim(t)
	s.put("specs/dags/soon.yaml", specText("DAG", "soon", `session: urgent
nodes:
  - {name: implement, agent: bot, prompt: Implement.}`))
	s.settle()
	e, ok := s.find("soon", "implement")
	if !ok {
		t.Fatal("the node does not run")
	}
	s.start(e)
	s.finish("soon", "implement", schemas.OutcomeAsked, func(r *schemas.Run) {
		r.Asks = &schemas.Ask{To: "lead", Topic: "Pooling", Question: "Pool or not?", Blocking: true}
	})
	s.settle()
	for _, spec := range s.derive() {
		s.write(spec)
	}
	s.settle()
	of42 := func() (out []work.Item) {
		for _, it := range work.Ready(s.tree(), s.now, nil) {
			if it.Issue == 42 {
				out = append(out, it)
			}
		}
		return out
	}
	items := of42()
	wantLines(t, items, "CLR-42-001 #42 ready Pending",
		"dag/soon/implement #42 blocked WaitsForAnswer BLOCKED: Clarification CLR-42-001 pending from lead")
	if due := s.now.Add(30 * time.Minute); items[0].Agent != "lead" || items[0].Session != "urgent" ||
		items[1].Clarification != "CLR-42-001" || !items[1].Again.Equal(due) {
		t.Errorf("the question is %+v,\nthe node %+v;\nwant them in session urgent, again at %s", items[0], items[1], due)
	}
	s.put("specs/replies/up.yaml", specText("Reply", "up",
		"clarification: CLR-42-001\ntype: escalation\nfrom: ada\nbody: Let us meet."))
	s.settle()
	items = of42()
	wantLines(t, items, "CLR-42-001 #42 ready Escalated",
		"dag/soon/implement #42 blocked Escalated BLOCKED: Clarification CLR-42-001 escalated, waits for a human")
	if items[0].Agent != "" || !items[0].Free("pair", true) {
		t.Errorf("the escalation is %+v, want it for any person", items[0])
	}
}

// hook adds a hook record to an agent's entry.
func (s *sim) hook(agent, outcome, item string, issue int) {
	e := s.entry(schemas.AgentKind.Ref(agent))
	r := agents.NewHook(e, outcome, issue, s.now)
	r.For = item
	e.SetRuns(append(e.Runs(), &r))
	slices.SortFunc(e.Runs(), compareRuns)
}

// TestReadyClaims marks what somebody took until it is finished, and offers it to nobody meanwhile.
func TestReadyClaims(t *testing.T) {
	s := readySim(t)
	s.settle()
	s.hook("lead", schemas.OutcomeStarted, "dag/soon/review", 42)
	s.settle()
	free := func(agent string) (names []string) {
		for _, it := range work.Ready(s.tree(), s.now, nil) {
			if it.Free(agent, true) {
				names = append(names, it.Name)
			}
		}
		return names
	}
	if got := lines(work.Ready(s.tree(), s.now, nil))[2]; got != "dag/soon/review #42 ready WaitsForPerson taken by lead" {
		t.Errorf("the review is %q", got)
	}
	if got := free("lead"); !slices.Equal(got, []string{"dag/late/first"}) {
		t.Errorf("free for lead: %q", got)
	}
	s.hook("lead", schemas.OutcomeDone, "", 7)
	if got := free("lead"); len(got) != 1 {
		t.Errorf("an end on another issue freed something: %q", got)
	}
	s.hook("lead", schemas.OutcomeDone, "", 42)
	if got := free("lead"); !slices.Equal(got, []string{"dag/late/first", "dag/soon/review"}) {
		t.Errorf("free for lead after the end: %q", got)
	}
	if got := free("pair"); !slices.Equal(got, []string{"dag/soon/implement", "dag/late/draft"}) {
		t.Errorf("free for pair: %q", got)
	}
}

// TestEscalationsAreForPeople offers what agents could not settle to any person, and to no program.
func TestEscalationsAreForPeople(t *testing.T) {
	it := work.Item{Name: "CLR-9-001", State: work.ItemReady}
	if !it.Free("pair", true) || it.Free("bot", false) {
		t.Error("an escalation is not for people, or also for a program")
	}
	it.State = work.ItemBlocked
	if it.Free("pair", true) {
		t.Error("a blocked item is free")
	}
}

// TestHookKeys numbers the records of an agent, from the highest number on, and keeps what has ended apart.
func TestHookKeys(t *testing.T) {
	s := readySim(t)
	e := s.entry(schemas.AgentKind.Ref("lead"))
	if agents.LastHook(e) != nil || len(agents.HooksInForce(e)) > 0 {
		t.Error("an agent without records has hooks")
	}
	s.hook("lead", schemas.OutcomeStarted, "", 42)
	s.hook("lead", schemas.OutcomeStarted, "dag/soon/review", 42)
	s.hook("lead", schemas.OutcomeStarted, "", 7)
	end := agents.NewHook(s.entry(schemas.AgentKind.Ref("lead")), schemas.OutcomeDone, 42, s.now)
	if want := "agents/lead/hook-" + keys.Digest([]byte("lead"))[len("sha256:"):][:16] + "-4"; end.Key != want || end.Seq != 4 {
		t.Errorf("the fourth record is %s, number %d; want %s", end.Key, end.Seq, want)
	}
	s.hook("lead", schemas.OutcomeDone, "dag/soon/review", 42)
	if got := agents.HooksInForce(s.entry(schemas.AgentKind.Ref("lead"))); len(got) != 2 || got[0].Seq != 1 || got[1].Seq != 3 {
		t.Errorf("in force after the end of one item: %v", got)
	}
	s.hook("lead", schemas.OutcomeDone, "", 42)
	if got := agents.HooksInForce(s.entry(schemas.AgentKind.Ref("lead"))); len(got) != 1 || got[0].Issue != 7 {
		t.Errorf("in force after the end of the issue: %v", got)
	}
	if last := agents.LastHook(s.entry(schemas.AgentKind.Ref("lead"))); last.Seq != 5 || last.Outcome != schemas.OutcomeDone {
		t.Errorf("the last record is %+v", last)
	}
}

// TestWorksOnWhatItTookUpLast: an agent that took up an issue beside another one is at the later one.
func TestWorksOnWhatItTookUpLast(t *testing.T) {
	s := readySim(t)
	for _, issue := range []int{42, 7} {
		s.hook("lead", schemas.OutcomeStarted, "", issue)
		s.settle()
		st, ok := s.entry(schemas.AgentKind.Ref("lead")).Status().(*schemas.AgentStatus)
		if !ok || st.Status != schemas.AgentWorking || st.Issue == nil || *st.Issue != issue {
			t.Errorf("after the hook for issue %d: %+v", issue, st)
		}
	}
}

// TestBrief tells an agent what blocks it on the issue, what came of its questions there, and what it is asked anywhere.
func TestBrief(t *testing.T) {
	s := readySim(t)
	with := func(c schemas.Clarification, status string, resolved time.Duration) schemas.Clarification {
		c.Status = status
		if resolved > 0 {
			c.ResolvedAt = schemas.NewTime(s.now.Add(-resolved))
		}
		return c
	}
	ours := s.asked("pair", "bot", time.Hour)
	orphan := s.asked("bot", "pair", 0)
	orphan.Request = "removed"
	tree := s.tree().WithLedgers(
		ledger(t, 42, ours, with(ours, schemas.ClarificationAnswered, 0),
			with(ours, schemas.ClarificationResolved, time.Minute), with(ours, schemas.ClarificationResolved, time.Hour),
			with(ours, schemas.ClarificationEscalated, 0)),
		ledger(t, 7, ours, s.asked("bot", "pair", 0), orphan))
	b := threads.NewBrief(tree, "pair", 42, schemas.NewTime(s.now.Add(-2*time.Minute)), nil)
	ids := func(cs []schemas.Clarification) (out []string) {
		for _, c := range cs {
			out = append(out, c.ID)
		}
		return out
	}
	if got := ids(b.Blocked); !slices.Equal(got, []string{"CLR-42-001", "CLR-42-005"}) {
		t.Errorf("blocked by %q", got)
	}
	if got := ids(b.Answered); !slices.Equal(got, []string{"CLR-42-002", "CLR-42-003"}) {
		t.Errorf("answered: %q", got)
	}
	if got := ids(b.Asked); !slices.Equal(got, []string{"CLR-7-002"}) {
		t.Errorf("asked: %q", got)
	}
}

// TestUnroutable: what nobody can answer is not handed out, and says why and what to do.
func TestUnroutable(t *testing.T) {
	s := readySim(t)
	s.settle()
	lone := s.asked("lead", "lead", 0)
	empty := s.asked("pair", "lead", 0)
	empty.Topic = ""
	tree := s.tree().WithLedgers(ledger(t, 7, s.asked("pair", "lead", 0)),
		ledger(t, 3, s.asked("ghost", "lead", 0), s.asked("pair", "No one", 0), s.asked("lead", "pair", 0), lone, empty))
	ids, why := ledgers.UnroutableRecords(tree)
	if len(ids) != 5 || len(why) != 5 {
		t.Errorf("nobody can answer %v: %v", ids, why)
	}
	for id, want := range map[string]string{
		"CLR-3-001": `there is no agent "ghost": write specs/agents/ghost.yaml, or have the program that asks name one of the tree`,
		"CLR-3-002": `there is no agent "No one": no agent can be called so, or have the program that asks name one of the tree`,
		"CLR-3-003": "SCOPE_VIOLATION: agent 'lead' cannot clarify with 'pair'; allowed: []; list pair in canClarify of agent/lead, " +
			"or ask somebody whom it may ask",
		"CLR-3-004": `agent "lead" cannot ask itself: have the program that asks name another one`,
		"CLR-3-005": "its topic is wrong: ",
	} {
		if !strings.HasPrefix(why[id], want) {
			t.Errorf("of %s: %q, want %q", id, why[id], want)
		}
	}
	for _, it := range work.Ready(tree, s.now, nil) {
		if bad := why[it.Name] != ""; bad && (it.Free(it.Agent, true) || it.Blocked != "BLOCKED: "+why[it.Name]) ||
			it.Name == "CLR-7-001" && !it.Free("lead", true) {
			t.Errorf("%s is %s: %s", it.Name, it.State, it.Blocked)
		}
	}
}

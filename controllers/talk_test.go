package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomTalk drives random trees of agents that ask, answer, fail, go on to other work and are edited, beside people
// and another program that write into the ledgers. After every step the sim checks that deciding what is affected equals
// deciding everything, and that the outcome is a fixed point; the checks here are about what was said and what runs.
func TestRandomTalk(t *testing.T) {
	const steps = 60
	for seed := range uint64(mutants.Size(8, 16, 80)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			k := newTalk(t, seed)
			for i := 0; i < steps && !t.Failed(); i++ {
				k.step()
				k.turn()
			}
			k.calmDown()
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(k.log, "\n"))
			}
		})
	}
}

// talk does random things to a sim in which agents ask each other.
type talk struct {
	*chaos
	said  map[string]string // clarification → its thread when it was last looked at
	ids   map[string]string // request → its number
	phase map[string]string // request → its phase when it was last looked at
	ran   map[string]bool   // keys of finished runs
}

func newTalk(t *testing.T, seed uint64) *talk {
	k := &talk{chaos: &chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 7)), succeeded: map[string]string{}},
		said: map[string]string{}, ids: map[string]string{}, phase: map[string]string{}, ran: map[string]bool{}}
	for _, name := range []string{"engineer", "architect", "boss"} {
		k.agent(name)
	}
	k.put("specs/sessions/s0.yaml", head("Session", "s0")+"spec: {issue: 2}\n")
	k.put("specs/dags/d0.yaml", head("DAG", "d0")+"spec: {session: s0, policy: {continueOnFailure: true, retry: {limit: 1, "+
		"backoff: 1s}}, nodes: [{name: n0, agent: engineer, prompt: work}, {name: n1, agent: architect, prompt: plan, "+
		"onEscalation: fail}]}\n")
	k.turn()
	return k
}

func (k *talk) agent(name string) {
	runner := "{command: {argv: [tool]}}"
	if name == "boss" {
		runner = "{human: {}}"
	}
	may := pick(k.r, "engineer, architect, boss", "engineer, architect, boss", "architect", "boss")
	may = strings.ReplaceAll(strings.ReplaceAll(may, name+", ", ""), ", "+name, "")
	k.note("agent %s may ask %s", name, may)
	k.put("specs/agents/"+name+".yaml", head("Agent", name)+"spec: {runner: "+runner+", canClarify: ["+may+"]}\n")
}

// turn does what the loop does in a turn.
func (k *talk) turn() {
	k.t.Helper()
	for range 10 {
		before := k.tree()
		k.settle()
		k.listen(before)
		specs := k.derive()
		for _, spec := range specs {
			k.note("derived %s", spec.Ref)
			k.write(spec)
		}
		k.fold()
		if len(specs) == 0 && len(k.dirty) == 0 {
			k.look()
			return
		}
	}
	k.t.Errorf("the turn comes to no end: %v", k.dirty)
}

// listen checks the events of a decision.
func (k *talk) listen(before *state.Tree) {
	k.t.Helper()
	for _, ref := range k.last.Changed {
		for _, e := range settle.Events(k.tree(), before.Entry(ref), k.tree().Entry(ref)) {
			if e.Reason == "" || e.Clarified != nil && (e.Clarified.Type == "" || e.Clarified.Status == "") {
				k.t.Errorf("a malformed event: %+v %+v", e, e.Clarified)
			}
		}
	}
}

func (k *talk) step() {
	switch n := k.r.IntN(30); {
	case n < 6:
		k.startSome()
	case n < 13:
		k.finishTalk()
	case n < 17:
		k.request()
	case n < 23:
		k.reply()
	case n < 25:
		k.wait()
	case n < 26:
		k.cancelUnwanted()
	case n < 27:
		k.hook()
	default:
		k.disturb(n)
	}
}

func (k *talk) disturb(n int) {
	switch k.r.IntN(9) {
	case 8:
		for _, path := range slices.Sorted(maps.Keys(k.specs)) {
			if k.specs[path].Ref.Kind == schemas.ObservationKind.Name && k.r.IntN(2) == 0 {
				k.note("%s is removed", path)
				k.put(path, "")
			}
		}
	case 0:
		k.agent(pick(k.r, "engineer", "architect"))
	case 1:
		k.put("specs/agents/architect.yaml", "")
		k.note("the architect is gone")
	case 2:
		k.note("crash")
		for ref, e := range maps.Clone(k.entries) {
			if len(e.Claims) > 0 {
				k.entry(ref).Claims = nil
			}
		}
	case 3:
		k.foreign()
	case 4:
		i := k.r.IntN(6)
		k.note("the request q%d is removed, or edited", i)
		k.put(fmt.Sprintf("specs/clarificationrequests/q%d.yaml", i), pick(k.r, "", k.requestText(i)))
	case 5:
		k.put("specs/workflows/w.yaml", pick(k.r, "", head("Workflow", "w")+"spec: {steps: [{id: s, agent: engineer, "+
			"can_clarify: [architect], clarify_blocking_allowed: false}]}\n"))
		k.note("the workflow comes or goes")
	case 6:
		k.actions++
		k.put(fmt.Sprintf("specs/actions/a%d.yaml", k.actions), head("Action", fmt.Sprintf("a%d", k.actions))+
			fmt.Sprintf("spec: {target: dag/d0, verb: retry, node: n%d, at: %q}\n", k.r.IntN(2), k.now.Format(time.RFC3339Nano)))
		k.note("retry a%d", k.actions)
	case 7:
		k.agent("architect")
	}
}

func (k *talk) wait() {
	k.now = k.now.Add(time.Duration(1+k.r.IntN(2400)) * time.Second)
	k.note("now %s", k.now.Format(time.TimeOnly))
	k.wake()
}

func (k *talk) wake() {
	for ref, out := range k.last.Outs {
		if !out.Again.IsZero() && !out.Again.After(k.now) && k.entries[ref] != nil {
			k.entry(ref)
		}
	}
}

func (k *talk) request() {
	i := k.r.IntN(6)
	path := fmt.Sprintf("specs/clarificationrequests/q%d.yaml", i)
	if _, there := k.specs[path]; !there {
		k.put(path, k.requestText(i))
		k.note("request q%d", i)
	}
}

func (k *talk) requestText(i int) string {
	from := pick(k.r, "engineer", "architect", "boss")
	to := pick(k.r, "engineer", "architect", "boss")
	if from == to {
		to = map[string]string{"engineer": "architect", "architect": "boss", "boss": "engineer"}[from]
	}
	name := fmt.Sprintf("q%d", i)
	run := ""
	if st, ok := k.entries[schemas.DAGKind.Ref("d0")].Status().(*schemas.DAGStatus); ok && from == "engineer" && k.r.IntN(3) == 0 {
		run = ", run: " + keys.OfEffect(schemas.DAGKind, "d0", "n0", st.Nodes.Of("n0").Key, 1+k.r.IntN(2))
	}
	return head("ClarificationRequest", name) + fmt.Sprintf(
		"spec: {issue: %d, from: %s, to: %s, topic: %q, question: %q, blocking: %v, maxRounds: %d, slaMinutes: %d%s}\n",
		1+k.r.IntN(2), from, to, pick(k.r, "red things", "blue birds", "green hills and valleys"), k.sentence(), k.r.IntN(3) > 0,
		1+k.r.IntN(3), pick(k.r, 0, 10, 30, 30, 30), run)
}

func (k *talk) sentence() string {
	words := []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
	k.r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return strings.Join(words[:3+k.r.IntN(3)], " ")
}

func (k *talk) reply() {
	to := fmt.Sprintf("q%d", k.r.IntN(6))
	if k.r.IntN(2) == 0 {
		to = fmt.Sprintf("CLR-%d-%03d", 1+k.r.IntN(2), 1+k.r.IntN(5))
	}
	k.actions++
	name := fmt.Sprintf("r%d", k.actions)
	if k.actions > 3 && k.r.IntN(6) == 0 {
		name = fmt.Sprintf("r%d", k.actions-k.r.IntN(4)) // an edit
	}
	typ := pick(k.r, "answer", "answer", "question", "question", "resolution", "escalation", "abandonment")
	k.note("reply %s: %s to %s", name, typ, to)
	k.put("specs/replies/"+name+".yaml", head("Reply", name)+fmt.Sprintf("spec: {clarification: %s, type: %s, from: %s, body: %q}\n",
		to, typ, pick(k.r, "ann", "ann", "engineer", "architect"), k.sentence()))
	if k.r.IntN(8) == 0 {
		gone := fmt.Sprintf("specs/replies/r%d.yaml", 1+k.r.IntN(k.actions))
		k.note("rm %s", gone)
		k.put(gone, "")
	}
}

func (k *talk) hook() {
	name := pick(k.r, "engineer", "architect")
	if e := k.entries[schemas.AgentKind.Ref(name)]; e == nil || e.Gone() {
		return
	}
	e := k.entry(schemas.AgentKind.Ref(name))
	run := agents.NewHook(e, pick(k.r, schemas.OutcomeStarted, schemas.OutcomeDone), 1+k.r.IntN(3), k.now)
	e.SetRuns(append(e.Runs(), &run))
	k.note("hook of %s: %s %d", name, run.Outcome, run.Issue)
}

// finishTalk ends some runs: answers, failures, questions.
func (k *talk) finishTalk() {
	for _, ref := range slices.SortedFunc(maps.Keys(k.entries), schemas.Ref.Compare) {
		for _, c := range slices.Clone(k.entries[ref].Claims) {
			if c.StartedAt.IsZero() || k.r.IntN(3) == 0 {
				continue
			}
			if k.ran[c.Key] {
				k.t.Errorf("%s ran twice", c.Key)
			}
			k.end(ref, c.Key, k.outcome(ref))
		}
	}
}

func (k *talk) outcome(ref schemas.Ref) func(*schemas.Run) {
	return func(r *schemas.Run) {
		r.Outcome = pick(k.r, schemas.OutcomeSucceeded, schemas.OutcomeSucceeded, schemas.OutcomeFailed, schemas.OutcomeTimedOut,
			schemas.OutcomeCancelled)
		r.Result, _ = json.Marshal(k.sentence())
		if ref.Kind == schemas.DAGKind.Name && k.r.IntN(2) == 0 {
			r.Outcome, r.Result = schemas.OutcomeAsked, nil
			to := pick(k.r, "architect", "engineer", "boss", "nobody")
			if to == r.Agent {
				to = "boss"
			}
			r.Asks = &schemas.Ask{To: to, Topic: "the " + r.Node, Question: k.sentence(), Blocking: k.r.IntN(4) > 0}
		}
		k.ran[r.Key] = true
		k.note("end %s %s", r.Key, r.Outcome)
	}
}

// foreign lets another program write into a ledger under the lock: a new question, or a turn of an old one.
func (k *talk) foreign() {
	issue := 1 + k.r.IntN(2)
	ledger := schemas.Ledger{IssueNumber: issue}
	if data := k.ledgers[issue]; data != nil {
		if err := json.Unmarshal(data, &ledger); err != nil {
			k.t.Fatal(err)
		}
	}
	at := schemas.NewTime(k.now)
	turn := schemas.ClarificationTurn{Round: 1, From: "engineer", Type: schemas.TurnQuestion, Body: k.sentence(), Timestamp: at}
	if n := len(ledger.Clarifications); n > 0 && k.r.IntN(2) == 0 {
		c := &ledger.Clarifications[k.r.IntN(n)]
		turn.Round, turn.From, turn.Type = c.Round, c.To, pick(k.r, schemas.TurnAnswer, schemas.TurnQuestion, schemas.TurnResolution,
			schemas.TurnEscalation, "note")
		c.Thread = append(c.Thread, turn)
		k.note("another program writes a %s into %s", turn.Type, c.ID)
	} else {
		last := 0
		for _, c := range ledger.Clarifications {
			_, seq, _ := clarify.ParseID(c.ID)
			last = max(last, seq)
		}
		ledger.Clarifications = append(ledger.Clarifications, schemas.Clarification{ID: clarify.FormatID(issue, last+1),
			From: "engineer", To: pick(k.r, "architect", "stranger"), Topic: "theirs", Blocking: true,
			Status: schemas.ClarificationPending, Round: 1, MaxRounds: 2, Created: at, StaleAfter: at,
			Thread: []schemas.ClarificationTurn{turn}})
		k.note("another program asks on issue %d", issue)
	}
	data, err := json.Marshal(ledger)
	if err != nil {
		k.t.Fatal(err)
	}
	k.setLedger(issue, data)
}

// look checks what was said: numbers are unique, final and without gaps, threads only grow, phases follow the picture,
// and the ledgers say the same.
func (k *talk) look() {
	k.t.Helper()
	owner := map[string]string{}
	for _, e := range k.tree().Entries(schemas.ClarificationRequestKind.Name) {
		st := clarifications.Status(e)
		if st.ID == "" {
			continue
		}
		if by := owner[st.ID]; by != "" {
			k.t.Errorf("%s is the number of %s and of %s", st.ID, by, e.Name)
		}
		owner[st.ID] = e.Name
		k.lookAt(e, st)
	}
	for issue, data := range k.ledgers {
		k.lookAtLedger(issue, data)
	}
}

func (k *talk) lookAt(e *state.Entry, st *schemas.ClarificationRequestStatus) {
	k.t.Helper()
	was := k.said[st.ID]
	now := ""
	for _, t := range st.Thread {
		now += fmt.Sprintf("%d %s %s %s\n", t.Round, t.From, t.Type, t.Body)
	}
	if !strings.HasPrefix(now, was) {
		k.t.Errorf("%s: the thread was\n%sand is\n%s", st.ID, was, now)
	}
	if from := k.phase[st.ID]; from != "" && from != st.Phase && !leads(from, st.Phase, 8) {
		k.t.Errorf("%s went from %s to %s", st.ID, from, st.Phase)
	}
	k.said[st.ID], k.phase[st.ID] = now, st.Phase
	if st.Round > st.MaxRounds && st.Phase != schemas.ClarificationResolved && !strings.Contains(now, "theirs") {
		k.t.Errorf("%s is in round %d of %d", st.ID, st.Round, st.MaxRounds)
	}
}

// leads reports whether a way of at most n steps leads from one phase to another.
func leads(from, to string, n int) bool {
	if clarify.Legal(from, to) {
		return true
	}
	for _, next := range anyPhaseOfRequest {
		if n > 1 && clarify.Legal(from, next) && leads(next, to, n-1) {
			return true
		}
	}
	return false
}

func (k *talk) lookAtLedger(issue int, data []byte) {
	k.t.Helper()
	var l schemas.Ledger
	if err := json.Unmarshal(data, &l); err != nil {
		k.t.Fatal(err)
	}
	for i, c := range l.Clarifications {
		if c.ID != clarify.FormatID(issue, i+1) {
			k.t.Errorf("record %d of issue %d is %s", i+1, issue, c.ID)
		}
		e := k.entries[schemas.ClarificationRequestKind.Ref(c.Request)]
		if c.Request == "" || e == nil || e.Object == nil || clarifications.Status(e).ObservedDigest != e.Object.Digest {
			continue
		}
		if st := clarifications.Status(e); st.ID == c.ID && (st.Phase != c.Status || len(st.Thread) != len(c.Thread)) {
			k.t.Errorf("%s is %s with %d turns, and %s with %d in the ledger", c.ID, st.Phase, len(st.Thread), c.Status, len(c.Thread))
		}
	}
}

// calmDown lets everything that runs and is retried come to its end. Only people are waited for then.
func (k *talk) calmDown() {
	for range 200 {
		k.cancelUnwanted()
		for _, e := range k.effects() {
			k.start(e)
			k.end(e.Owner, e.Key, func(r *schemas.Run) { r.Outcome, r.Result = schemas.OutcomeSucceeded, json.RawMessage(`"omega psi"`) })
		}
		again := false
		for _, out := range k.last.Outs {
			again = again || !out.Again.IsZero()
		}
		if len(k.dirty) == 0 && !again && len(k.effects()) == 0 {
			break
		}
		k.now = k.now.Add(10 * time.Minute)
		k.wake()
		k.turn()
	}
	for ref, e := range k.entries {
		if e.Broken() || !e.HasStatus() {
			continue
		}
		if c := e.Status().Base().Condition(schemas.Reconciling); c != nil {
			k.t.Errorf("%s is at work for ever: %s", ref, c.Message)
		}
	}
}

var anyPhaseOfRequest = []string{schemas.ClarificationPending, schemas.ClarificationStale, schemas.ClarificationAnswered,
	schemas.ClarificationResolved, schemas.ClarificationAbandoned, schemas.ClarificationEscalated}

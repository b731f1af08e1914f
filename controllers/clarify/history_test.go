package clarify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestMoves compares the table of moves with the picture, and checks that no other move is made.
func TestMoves(t *testing.T) {
	all := []string{"", "pending", "answered", "resolved", "stale", "escalated", "abandoned", "odd"}
	for _, from := range all {
		for _, to := range all {
			d := &clarifyDecider{input: &Input{}}
			d.st.Phase = from
			want := picture[[2]string{from, to}]
			if moved := d.move(to, minute(0), "why"); moved != want || Legal(from, to) != want {
				t.Errorf("from %q to %q: moved %t, legal %t, want %t", from, to, moved, Legal(from, to), want)
			}
			if !want && (d.st.Phase != from || len(d.moves) > 0) {
				t.Errorf("a refused move from %q to %q left %q", from, to, d.st.Phase)
			}
		}
	}
}

// happening is something that is on record from a time on.
type happening struct {
	at    time.Time
	hub   *schemas.Run
	node  *schemas.Run
	reply *Reply
}

func (h happening) put(m *Input) {
	switch {
	case h.hub != nil:
		m.Runs = append(m.Runs, h.hub)
	case h.node != nil:
		m.Task.Runs = append(m.Task.Runs, h.node)
	case h.reply != nil:
		m.Replies = append(m.Replies, *h.reply)
	}
}

// texts are few, so that questions and answers repeat, and some are evasive.
var texts = []string{"Use the repository pattern with an adapter.", "Pool sizes come from the settings file.", "Yes.",
	question, "Who pools connections?", "Which tool migrates the schema?", "Is it a dual layer?"}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// randomMatter is a new question under random limits.
func randomMatter(rng *rand.Rand) *Input {
	m := *newStory(nil).m
	m.Target.Human = rng.IntN(3) == 0
	m.Limits = Limits{Rounds: 1 + rng.IntN(4), SLA: pick(rng, 0, 5*time.Minute, 30*time.Minute),
		RetryAfter: 30 * time.Second}
	if rng.IntN(2) == 0 {
		first := nodeRun(1, -1, 0, schemas.OutcomeAsked)
		m.Task = &Task{Key: first.Key, Runs: []*schemas.Run{first}}
	}
	return &m
}

// happen makes something happen to a matter that was decided as v; under is the hub's run that is under way.
func happen(rng *rand.Rand, m *Input, v Decision, under *Ask) happening {
	h := happening{at: m.Now}
	switch n := rng.IntN(6); {
	case n < 3 && under != nil:
		outcome := pick(rng, succeeded, succeeded, failedRun, schemas.OutcomeCancelled, schemas.OutcomeAsked)
		h.hub = hubRun(*under, m.Now, outcome, pick(rng, texts...))
	case n < 5 && m.Task != nil && v.Status.Phase == schemas.ClarificationAnswered:
		last := m.Task.Runs[len(m.Task.Runs)-1].FinishedAt
		began := last.Add(time.Duration(rng.Int64N(int64(m.Now.Sub(last.Time)) + 1)))
		h.node = &schemas.Run{Key: fmt.Sprint("dags/checks/implement-0123456789abcdef-", len(m.Task.Runs)+1),
			Outcome: pick(rng, succeeded, failedRun, schemas.OutcomeAsked), FinishedAt: schemas.NewTime(m.Now),
			StartedAt: schemas.NewTime(began)}
		if h.node.Outcome == schemas.OutcomeAsked {
			h.node.Asks = &schemas.Ask{To: pick(rng, "architect", "architect", "guide"), Question: pick(rng, texts...)}
		}
	default:
		typ := pick(rng, "answer", "answer", "question", "question", "resolution", "escalation", "abandonment")
		name := fmt.Sprintf("r%02d", len(m.Replies))
		h.reply = &Reply{Name: name, Digest: name, Agent: rng.IntN(2) == 0, Spec: &schemas.ReplySpec{Type: typ,
			From: pick(rng, "engineer", "architect", "maria"), Body: pick(rng, texts...)}}
	}
	return h
}

// TestLateIsEarly: who decides after every record and in between, and who decides only when a reply comes and at the
// end, see the same status. On the way every move is an edge of the picture, and nothing that was said is taken back.
func TestLateIsEarly(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := randomMatter(rng)
		first := *m
		var log []happening
		v := step(t, m)
		var under *Ask
		for range 4 + rng.IntN(16) {
			for range rng.IntN(3) {
				m.Now = m.Now.Add(time.Duration(1+rng.IntN(600)) * time.Second)
				v = step(t, m)
				seen[v.Status.Phase]++
			}
			if under == nil && rng.IntN(4) > 0 {
				under = v.Ask
			}
			m.Now = m.Now.Add(time.Duration(1+rng.IntN(300)) * time.Second)
			h := happen(rng, m, v, under)
			if h.hub != nil {
				under = nil
			}
			h.at = m.Now
			if h.reply != nil {
				v = step(t, m) // a reply counts from when it is seen: the time up to then is settled
			}
			log = append(log, h)
			h.put(m)
			v = step(t, m)
			seen[v.Status.Phase]++
		}
		late := replay(t, &first, log, m.Now)
		if got, want := encoded(t, late.Status), encoded(t, v.Status); got != want {
			t.Fatalf("seed %d: late\n%s\nearly\n%s", seed, got, want)
		}
	}
	for _, phase := range []string{"pending", "answered", "resolved", "stale", "escalated", "abandoned"} {
		if seen[phase] < 20 {
			t.Errorf("%s was seen %d times only: the histories test little", phase, seen[phase])
		}
	}
}

// step decides, checks the verdict against what was before, and keeps the status.
func step(t *testing.T, m *Input) Decision {
	t.Helper()
	v := m.Decide()
	checkVerdict(t, m, v)
	if old := m.Old; old != nil {
		n := len(old.Thread)
		if len(v.Status.Thread) < n || encoded(t, v.Status.Thread[:n]) != encoded(t, old.Thread) ||
			v.Status.Round < old.Round {
			t.Fatalf("something was taken back:\n%s\n%s", encoded(t, old), encoded(t, v.Status))
		}
	}
	m.Old = decoded(t, v.Status)
	again := m.Decide()
	if encoded(t, again.Status) != encoded(t, v.Status) || len(again.Moves) > 0 {
		t.Fatalf("decided again, the status changed:\n%s\n%s", encoded(t, v.Status), encoded(t, again.Status))
	}
	return v
}

// replay decides as seldom as possible.
func replay(t *testing.T, m *Input, log []happening, end time.Time) Decision {
	t.Helper()
	if m.Task != nil {
		m.Task = &Task{Key: m.Task.Key, Runs: m.Task.Runs[:1:1]}
	}
	step(t, m)
	for _, h := range log {
		m.Now = h.at
		if h.reply != nil {
			step(t, m)
		}
		h.put(m)
		if h.reply != nil {
			step(t, m)
		}
	}
	m.Now = end
	return step(t, m)
}

// TestAnything: clocks that jump, ledgers that others edit, statuses that are lost. The moves stay legal, nothing that
// was said is taken back, and the ledger can be folded after at most one more decision.
func TestAnything(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := randomMatter(rng)
		var under *Ask
		ledger := foldAll(t, m, nil, step(t, m))
		for range 4 + rng.IntN(16) {
			m.Now = m.Now.Add(time.Duration(rng.IntN(7200)-1800) * time.Second)
			ledger = meddle(t, rng, m, ledger)
			m.Ledger = readRecord(t, ledger)
			v := step(t, m)
			if under == nil {
				under = v.Ask
			}
			if h := happen(rng, withPast(m), v, under); true {
				under = nil
				h.put(m)
			}
			ledger = foldAll(t, m, ledger, step(t, m))
			if rng.IntN(12) == 0 {
				m.Old = nil // lost; the ledger is there
			}
		}
	}
}

// withPast lets a matter's node runs lie in the past, whatever the clock says.
func withPast(m *Input) *Input {
	c := *m
	if m.Task != nil {
		c.Now = latest(m.Now, m.Task.Runs[len(m.Task.Runs)-1].FinishedAt.Time)
	}
	return &c
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// meddle edits the ledger as another program might.
func meddle(t *testing.T, rng *rand.Rand, m *Input, ledger []byte) []byte {
	t.Helper()
	f, err := readFile(ledger, 42)
	if err != nil {
		t.Fatal(err)
	}
	c := f.records[0].Clarification
	switch rng.IntN(4) {
	case 0:
		c.Status = pick(rng, "pending", "answered", "resolved", "stale", "escalated", "abandoned", "odd")
		c.Round += rng.IntN(2)
	case 1:
		typ := pick(rng, "answer", "question", "resolution", "escalation", "remark")
		c.Thread = append(slices.Clone(c.Thread), schemas.ClarificationTurn{Round: rng.IntN(5), Type: typ,
			From: pick(rng, "engineer", "architect", "bot"), Body: pick(rng, texts...) + fmt.Sprint(rng.IntN(99)),
			Timestamp: schemas.NewTime(m.Now)})
	default:
		return ledger
	}
	if err := f.records[0].set(&c); err != nil {
		t.Fatal(err)
	}
	out, err := f.encode()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readRecord(t *testing.T, ledger []byte) *schemas.Clarification {
	t.Helper()
	f, err := readFile(ledger, 42)
	if err != nil || len(f.records) != 1 {
		t.Fatalf("%v in %s", err, ledger)
	}
	return &f.records[0].Clarification
}

// foldAll folds, and where another program was faster reads and decides once more, as the loop does.
func foldAll(t *testing.T, m *Input, ledger []byte, v Decision) []byte {
	t.Helper()
	for try := range 2 {
		out, err := Fold(ledger, 42, []schemas.Clarification{Record(m.Name, m.Spec, v.Status)})
		if err == nil {
			m.Ledger = readRecord(t, out)
			return out
		}
		if !errors.Is(err, ErrStale) || try == 1 {
			t.Fatalf("%v\nstatus %s\nledger %s", err, encoded(t, v.Status), ledger)
		}
		m.Ledger = readRecord(t, ledger)
		v = step(t, m)
	}
	return nil
}

package clarify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// randomLedger makes a small ledger out of few words, so that ledgers overlap.
func randomLedger(rng *rand.Rand) []byte {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	f := &ledgerFile{issue: 42, extra: randomExtras(rng)}
	for range rng.IntN(4) {
		r := ledgerRecord{extra: randomExtras(rng), Clarification: schemas.Clarification{ID: FormatID(42, 1+rng.IntN(3)),
			Request: pick("", "q", "r"), From: pick("a", "b"), To: pick("b", "c"), Topic: pick("x", "y"),
			Blocking: rng.IntN(2) == 0,
			Status:   pick("pending", "answered", "resolved", "stale", "escalated", "abandoned", "odd"),
			Round:    rng.IntN(4) - 1, MaxRounds: rng.IntN(6), Created: minute(float64(rng.IntN(3)))}}
		for range rng.IntN(4) {
			r.Thread = append(r.Thread, other(1+rng.IntN(2), pick("question", "answer", "resolution"), pick("a", "b"),
				pick("one", "two"), float64(rng.IntN(3))))
			r.entries = append(r.entries, randomExtras(rng))
		}
		if rng.IntN(2) == 0 {
			r.ResolvedAt, r.StaleAfter = minute(float64(rng.IntN(3))), minute(float64(rng.IntN(3)))
		}
		f.records = append(f.records, r)
	}
	b, err := f.encode()
	if err != nil {
		panic(err)
	}
	return b
}

func randomExtras(rng *rand.Rand) extras {
	var x extras
	for range rng.IntN(3) {
		if x == nil {
			x = extras{}
		}
		x[fmt.Sprintf("x-%d", rng.IntN(3))] = json.RawMessage([]string{`1`, `"a"`, `{"k": [2, 3]}`, `null`}[rng.IntN(4)])
	}
	return x
}

func merged(t *testing.T, a, b []byte) []byte {
	t.Helper()
	out, err := Merge(a, b, 42)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMergeLaws is I9: commutative, associative, idempotent, and nothing is lost.
func TestMergeLaws(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a, b, c := randomLedger(rng), randomLedger(rng), randomLedger(rng)
		ab := merged(t, a, b)
		for law, other := range map[string][]byte{"commutative": merged(t, b, a), "idempotent": merged(t, ab, ab),
			"absorbing": merged(t, ab, a)} {
			if !bytes.Equal(ab, other) {
				t.Fatalf("seed %d: not %s:\n%s\n%s\na %s\nb %s", seed, law, ab, other, a, b)
			}
		}
		if left, right := merged(t, ab, c), merged(t, a, merged(t, b, c)); !bytes.Equal(left, right) {
			t.Fatalf("seed %d: not associative:\n%s\n%s", seed, left, right)
		}
		checkKept(t, a, ab)
		checkKept(t, b, ab)
	}
}

// checkKept checks that every record, turn and unknown field of a ledger is in another one.
func checkKept(t *testing.T, part, whole []byte) {
	t.Helper()
	p, err := readFile(part, 42)
	w, err2 := readFile(whole, 42)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, f := range []*ledgerFile{p, w} {
		for i := range f.records {
			if err := f.records[i].thaw(); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkNames(t, p.extra, w.extra)
	for _, r := range p.records {
		at := -1
		for i := range w.records {
			if w.records[i].ID == r.ID && w.records[i].Request == r.Request {
				at = i
			}
		}
		if at < 0 {
			t.Fatalf("record %s %s is lost:\n%s", r.ID, r.Request, whole)
		}
		checkNames(t, r.extra, w.records[at].extra)
		for i, turn := range r.Thread {
			found := false
			for j, u := range w.records[at].Thread {
				if sameTurn(turn, u) {
					found = true
					checkNames(t, r.entries[i], w.records[at].entries[j])
				}
			}
			if !found {
				t.Fatalf("turn %+v is lost:\n%s", turn, whole)
			}
		}
	}
}

func checkNames(t *testing.T, part, whole extras) {
	t.Helper()
	for name := range part {
		if _, ok := whole[name]; !ok {
			t.Fatalf("field %s is lost", name)
		}
	}
}

func TestMergeAdvances(t *testing.T) {
	ours := answeredRecord(t)
	theirs := ours
	theirs.Status, theirs.Round, theirs.ResolvedAt = "resolved", 2, minute(9)
	theirs.Thread = append(slices.Clone(theirs.Thread), other(2, "resolution", "engineer", "Clear.", 9))
	out := merged(t, mustFold(t, nil, ours), mustFold(t, nil, theirs))
	if !bytes.Equal(out, mustFold(t, nil, theirs)) {
		t.Errorf("got\n%s", out)
	}
	if _, err := Merge([]byte("{"), out, 42); err == nil {
		t.Error("a broken ledger was merged")
	}
	if !strings.Contains(string(out), `"status": "resolved"`) {
		t.Errorf("got\n%s", out)
	}
}

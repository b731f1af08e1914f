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

// badRecords cannot be used: a date that is none, another issue, a wrong type, a thread that is no list, no object.
var badRecords = []string{`{"id":"CLR-42-007","created":"yesterday","cost":3}`, `{"id":"CLR-99-001","topic":"x"}`,
	`{"id":7}`, `{"id":"CLR-42-002","thread":[1]}`, `7`, `null`}

// ledgerText is a ledger of records as they stand.
func ledgerText(records ...string) []byte {
	return []byte(`{"issueNumber":42,"clarifications":[` + strings.Join(records, ",") + `]}`)
}

func recordText(t testing.TB, c schemas.Clarification) string {
	t.Helper()
	return encoded(t, c)
}

// TestFoldKeepsBadRecords: what cannot be used stays as it stands, and is in nobody's way; a record of ours that somebody
// broke is put right.
func TestFoldKeepsBadRecords(t *testing.T) {
	ours := answeredRecord(t)
	broken := fmt.Sprintf(`{"id":%q,"request":%q,"created":"yesterday","cost":4,"thread":"none"}`, ours.ID, ours.Request)
	taken := fmt.Sprintf(`{"id":%q,"created":"yesterday"}`, ours.ID)
	out, err := Fold(ledgerText(append([]string{broken, taken}, badRecords...)...), 42, []schemas.Clarification{ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range append([]string{taken}, badRecords...) {
		if !bytes.Contains(out, []byte(bad)) {
			t.Errorf("%s is lost in\n%s", bad, out)
		}
	}
	f, err := readFile(out, 42)
	if err != nil || len(f.records) != 2+len(badRecords) || !f.records[0].same(&ours) || !bytes.Contains(out, []byte(`"cost": 4`)) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := Fold(ledgerText(taken), 42, []schemas.Clarification{ours}); err != nil {
		t.Error(err)
	}
	if again, err := Fold(out, 42, []schemas.Clarification{ours}); err != nil || !bytes.Equal(again, out) {
		t.Errorf("folded again, it differs: %v\n%s", err, again)
	}
}

// TestMergeKeepsBadRecords: a merge loses none, in whatever order branches meet.
func TestMergeKeepsBadRecords(t *testing.T) {
	good := recordText(t, answeredRecord(t))
	a, b := ledgerText(append([]string{good}, badRecords[:4]...)...), ledgerText(badRecords[2:]...)
	ab, err := Merge(a, b, 42)
	ba, err2 := Merge(b, a, 42)
	twice, err3 := Merge(ab, ab, 42)
	if err != nil || err2 != nil || err3 != nil || !bytes.Equal(ab, ba) || !bytes.Equal(ab, twice) {
		t.Fatalf("%v, %v, %v\n%s\n%s\n%s", err, err2, err3, ab, ba, twice)
	}
	var got struct{ Clarifications []json.RawMessage }
	if err := json.Unmarshal(ab, &got); err != nil || len(got.Clarifications) != 1+len(badRecords) {
		t.Errorf("%v: %d records\n%s", err, len(got.Clarifications), ab)
	}
	carried, err := Carry(b, a, b, 42, nil)
	if err != nil || !bytes.Contains(carried, []byte(`CLR-99-001`)) || bytes.Count(carried, []byte(`"id": 7`)) != 1 {
		t.Errorf("%v\n%s", err, carried)
	}
}

// TestRenumber: of records with one number, that of a request keeps it, else the first; copies are united, unknown fields
// and turns stay.
func TestRenumber(t *testing.T) {
	named := answeredRecord(t)
	other := func(topic string) schemas.Clarification {
		return with(named, func(c *schemas.Clarification) {
			c.Request, c.Topic = "", topic
			c.Thread = []schemas.ClarificationTurn{{Round: 1, From: "engineer", Type: "question", Body: topic + "?"}}
		})
	}
	copied := strings.Replace(recordText(t, other("a")), "{", `{"cost":5,`, 1)
	old := ledgerText(recordText(t, other("a")), recordText(t, other("b")), recordText(t, named), copied,
		recordText(t, with(other("c"), func(c *schemas.Clarification) { c.ID = "CLR-42-005" })))
	out, err := Renumber(old, 42, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFile(out, 42)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range f.records {
		got = append(got, r.ID+" "+r.Topic)
	}
	want := []string{named.ID + " " + named.Topic, "CLR-42-005 c", "CLR-42-006 a", "CLR-42-007 b", "CLR-42-008 a"}
	if !slices.Equal(got, want) {
		t.Errorf("renumbered to %q, want %q", got, want)
	}
	out, err = Renumber(ledgerText(recordText(t, other("a")), copied, recordText(t, other("b"))), 42, nil)
	if f, err2 := readFile(out, 42); err != nil || err2 != nil || len(f.records) != 2 || f.records[1].Topic != "b" ||
		f.records[1].ID != FormatID(42, LastSeq(42, named.ID)+1) || !bytes.Contains(out, []byte(`"cost": 5`)) {
		t.Errorf("%v, %v\n%s", err, err2, out)
	}
	kept := other("b") // ours has taken it up, and its name is not in the ledger yet
	out, err = Renumber(ledgerText(recordText(t, other("a")), recordText(t, kept)), 42,
		[]schemas.Clarification{with(kept, func(c *schemas.Clarification) { c.Request = "ours" })})
	if f, err2 := readFile(out, 42); err != nil || err2 != nil || f.records[0].Topic != "b" || f.records[0].ID != named.ID {
		t.Errorf("%v, %v\n%s", err, err2, out)
	}
}

// TestRenumberLaws: afterwards no records of other programs share a number, nothing is lost, and nothing changes again.
func TestRenumberLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var records []string
		topics := map[string]bool{}
		for range rng.IntN(8) {
			topic := fmt.Sprint("t", rng.IntN(4))
			c := with(record0(FormatID(42, 1+rng.IntN(3)), "engineer", "architect", topic, "pending", 0),
				func(c *schemas.Clarification) { c.Request = pick(rng, "", "", "ours", "gone") })
			records, topics[topic] = append(records, recordText(t, c)), true
		}
		records = append(records, pick(rng, badRecords...))
		old := ledgerText(records...)
		out, err := Renumber(old, 42, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Renumber(out, 42, nil)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%v: renumbered again, it differs\n%s\n%s", err, out, again)
		}
		f, _ := readFile(out, 42)
		given, left := map[string]int{}, map[string]bool{}
		for _, r := range f.records {
			if !r.bad {
				left[r.Topic] = true
				given[r.ID]++
			}
		}
		for _, r := range f.records {
			if !r.bad && r.Request == "" && given[r.ID] > 1 {
				t.Fatalf("%s is given twice in\n%s", r.ID, out)
			}
		}
		if len(left) != len(topics) {
			t.Fatalf("topics %v of %v are left in\n%s", left, topics, out)
		}
	}
}

package clarify

import (
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const ledger51 = "state/clarifications/issue-51.json"

// closedLedger has two closed records of another program, the first with a field that only that program knows.
func closedLedger(t testing.TB) string {
	closed := func(id string) schemas.Clarification {
		return with(record0(id, "engineer", "architect", "topic "+id, "resolved", 0), func(c *schemas.Clarification) {
			c.Request = ""
		})
	}
	data, err := Fold(nil, 51, []schemas.Clarification{closed("CLR-51-001"), closed("CLR-51-002")})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(data), `"id": "CLR-51-001",`, `"id": "CLR-51-001", "cost": [1, 2],`, 1)
}

// TestSalvage cuts a ledger off at every place: whole records are kept as they stand, and a number that stands in the text
// counts as given.
func TestSalvage(t *testing.T) {
	whole := closedLedger(t)
	for n := range len(whole) {
		got := Salvage([]byte(whole[:n]), 51)
		records, last := 0, 0
		if got != nil {
			l, err := state.ParseLedger(ledger51, got)
			if err != nil {
				t.Fatalf("cut to %d bytes: %v\n%s", n, err, got)
			}
			records, last = len(l.Records()), l.Last
		}
		given := highest([]byte(whole[:n]), 51)
		if last < given || records > last || records < given-1 {
			t.Fatalf("cut to %d bytes, with %d ids: %d records, the last number is %d", n, given, records, last)
		}
		if records > 0 && !strings.Contains(string(got), `"cost": [1, 2]`) {
			t.Fatalf("cut to %d bytes, the field of another program is lost:\n%s", n, got)
		}
	}
}

// TestSalvageOthers: what else can be wrong with a ledger.
func TestSalvageOthers(t *testing.T) {
	whole := closedLedger(t)
	for name, c := range map[string]struct {
		damaged string
		want    string // records, and the last number
	}{
		"nothing":           {"", "none"},
		"no JSON":           {"hello", "none"},
		"another issue's":   {strings.ReplaceAll(strings.ReplaceAll(whole, "CLR-51", "CLR-7"), "51", "7"), "none"},
		"no issue number":   {strings.Replace(whole, `"issueNumber": 51,`, "", 1), "2 to 2"},
		"a wrong type":      {strings.Replace(whole, `"round": 1`, `"round": "x"`, 1), "1 to 2"},
		"bytes in between":  {strings.Replace(whole, `"CLR-51-002"`, "\x00\xff", 1), "1 to 2"},
		"no UTF-8":          {strings.Replace(whole, "topic CLR-51-001", "\xff", 1), "1 to 2"},
		"a number to come":  {`{"clarifications": [{"id": "CLR-51-017", "topic": "CLR-51-999999999`, "0 to 17"},
		"a number is lost":  {whole[:strings.Index(whole, `"CLR-51-002`)], "1 to 1"},
		"no record was cut": {whole[:len(whole)-2], "2 to 2"},
		"an older salvage":  {`{"lastId": "CLR-51-009", "clarifications": [`, "0 to 9"},
		"deep":              {strings.Repeat("[", 20_000), "none"},
		"deeper":            {`{"x": ` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `,"y":"CLR-51-004`, "0 to 4"},
	} {
		got := "none"
		if data := Salvage([]byte(c.damaged), 51); data != nil {
			l, err := state.ParseLedger(ledger51, data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got = fmt.Sprintf("%d to %d", len(l.Records()), l.Last)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestMergeKeepsTheLastID: of two salvaged ledgers the higher number counts.
func TestMergeKeepsTheLastID(t *testing.T) {
	const low, high = `{"issueNumber": 51, "clarifications": [], "lastId": "CLR-51-999"}`,
		`{"issueNumber": 51, "clarifications": [], "lastId": "CLR-51-1000"}`
	for _, sides := range [][2]string{{low, high}, {high, low}} {
		data, err := Merge([]byte(sides[0]), []byte(sides[1]), 51)
		if err != nil || !strings.Contains(string(data), `"lastId": "CLR-51-1000"`) {
			t.Errorf("%v: %s", err, data)
		}
	}
}

// FuzzSalvage: whatever stands in a file, what is made of it can be read, is stable, and gives no number again.
func FuzzSalvage(f *testing.F) {
	whole := closedLedger(f)
	f.Add([]byte(whole))
	f.Add([]byte(whole[:len(whole)/2]))
	f.Add([]byte(`{"clarifications": [{"id": "CLR-51-001"}], "x": 1, "CLARIFICATIONS": [null, 1, {`))
	f.Fuzz(func(t *testing.T, damaged []byte) {
		data := Salvage(damaged, 51)
		last := highest(damaged, 51)
		if data == nil {
			return
		}
		l, err := state.ParseLedger(ledger51, data)
		if err != nil || l.Last < last {
			t.Fatalf("%v, %d after %d\n%s", err, l.Last, last, data)
		}
		if again := Salvage(data, 51); string(again) != string(data) {
			t.Fatalf("salvaged again it is another one:\n%s\n%s", data, again)
		}
	})
}

package clarify

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// goldenLedger is the requirements document's example as this program writes it.
const goldenLedger = `{
  "issueNumber": 42,
  "clarifications": [
    {
      "id": "CLR-42-001",
      "from": "engineer",
      "to": "architect",
      "topic": "Database abstraction layer approach",
      "blocking": true,
      "status": "answered",
      "round": 1,
      "maxRounds": 5,
      "created": "2026-02-26T10:00:00Z",
      "staleAfter": "2026-02-26T10:30:00Z",
      "resolvedAt": null,
      "thread": [
        {
          "round": 1,
          "from": "engineer",
          "type": "question",
          "body": "ADR-42 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?",
          "timestamp": "2026-02-26T10:00:00Z"
        },
        {
          "round": 1,
          "from": "architect",
          "type": "answer",
          "body": "a < b && c",
          "timestamp": "2026-02-26T10:02:00Z"
        }
      ],
      "request": "db-layer"
    }
  ]
}
`

func answeredRecord(t *testing.T) schemas.Clarification {
	s := newStory(t).decide().at(2).run(succeeded, "a < b && c").decide()
	return Record("db-layer", s.m.Spec, s.v.Status)
}

func mustFold(t *testing.T, old []byte, ours ...schemas.Clarification) []byte {
	t.Helper()
	out, err := Fold(old, 42, ours)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Fold(out, 42, ours)
	if err != nil || !bytes.Equal(again, out) {
		t.Fatalf("folded again: %v\n%s\n%s", err, again, out)
	}
	return out
}

func TestFoldFormat(t *testing.T) {
	if got := mustFold(t, nil, answeredRecord(t)); string(got) != goldenLedger {
		t.Errorf("got\n%s\nwant\n%s", got, goldenLedger)
	}
	if out, err := Fold(nil, 42, nil); out != nil || err != nil {
		t.Errorf("nothing of nothing: %q, %v", out, err)
	}
	if got := mustFold(t, []byte(`{"issueNumber":42}`)); string(got) != `{"issueNumber":42}` {
		t.Errorf("nothing to add, and the file was rewritten: %s", got)
	}
}

// TestFoldKeepsWhatIsForeign: records, fields of records, of turns and of the file stay; what has nothing new stays
// byte for byte.
func TestFoldKeepsWhatIsForeign(t *testing.T) {
	ours := answeredRecord(t)
	old := strings.Replace(goldenLedger, `"request": "db-layer"`,
		`"request": "db-layer", "x-cost": 0.10, "a<b": [1, {"é":null}]`, 1)
	old = strings.Replace(old, `"timestamp": "2026-02-26T10:00:00Z"`,
		`"timestamp": "2026-02-26T11:00:00+01:00", "model": "big"`, 1)
	old = strings.Replace(old, `"clarifications": [`, `"schema": "agentx/1", "clarifications": [
    {"id":"CLR-42-002","from":"reviewer","to":"engineer","topic":"x","status":"weird","mood":"good","thread":null},`, 1)
	if got := mustFold(t, []byte(old), ours); string(got) != old {
		t.Errorf("rewritten without need:\n%s", got)
	}
	ours.Status = "resolved"
	got := string(mustFold(t, []byte(old), ours))
	for _, want := range []string{`"x-cost": 0.10`, `"a<b": [`, `"é": null`, `"model": "big"`, `"schema": "agentx/1"`,
		`"mood":"good"`, `"status":"weird"`, `"status": "resolved"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is lost:\n%s", want, got)
		}
	}
	if i, j := strings.Index(got, "CLR-42-001"), strings.Index(got, "CLR-42-002"); i > j {
		t.Errorf("records out of order:\n%s", got)
	}
}

func TestFoldStale(t *testing.T) {
	ours := answeredRecord(t)
	for name, change := range map[string]func(*schemas.Clarification){
		"an unknown turn": func(c *schemas.Clarification) {
			c.Thread = append(c.Thread, other(1, "answer", "x", "y", 3))
		},
		"another question":     func(c *schemas.Clarification) { c.Request, c.Thread[0].Body = "", "Another one?" },
		"another request":      func(c *schemas.Clarification) { c.Request = "other" },
		"a resolution":         func(c *schemas.Clarification) { c.Status = "resolved" },
		"an escalation":        func(c *schemas.Clarification) { c.Status = "escalated" },
		"our request, renamed": func(c *schemas.Clarification) { c.ID = "CLR-42-009" },
	} {
		theirs := ours
		theirs.Thread = append([]schemas.ClarificationTurn(nil), ours.Thread...)
		change(&theirs)
		if _, err := Fold(mustFold(t, nil, theirs), 42, []schemas.Clarification{ours}); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v, want ErrStale", name, err)
		}
	}
}

func TestFoldRefusesTwins(t *testing.T) {
	a := answeredRecord(t)
	b := a
	b.Request = "twin"
	if _, err := Fold(nil, 42, []schemas.Clarification{a, b}); !errors.Is(err, ErrStale) {
		t.Errorf("two requests with one id: %v", err)
	}
}

func TestFoldNoLedger(t *testing.T) {
	for _, old := range []string{"", " ", "{", "null", "[]", "7", `{"issueNumber":41,"clarifications":[]}`,
		`{"clarifications":[]}`, goldenLedger[:len(goldenLedger)-4]} {
		out, err := Fold([]byte(old), 42, []schemas.Clarification{answeredRecord(t)})
		if !errors.Is(err, ErrNoLedger) || out != nil {
			t.Errorf("%q: %q, %v", old, out, err)
		}
	}
}

// TestFoldAdopts: a record of another program that became a request keeps its place and gets our name.
func TestFoldAdopts(t *testing.T) {
	ours := answeredRecord(t)
	theirs := ours
	theirs.Request, theirs.Status, theirs.Thread = "", "pending", ours.Thread[:1]
	out := string(mustFold(t, mustFold(t, nil, theirs), ours))
	if out != goldenLedger {
		t.Errorf("got\n%s", out)
	}
	double := strings.Replace(goldenLedger, "    {\n      \"id\"",
		`    {"id":"CLR-42-001","from":"engineer","to":"architect",`+
			`"topic":"Database abstraction layer approach","thread":[{"round":1,"from":"engineer","type":"question","body":"`+
			question+`"}]},`+"\n    {\n      \"id\"", 1)
	if out := string(mustFold(t, []byte(double), ours)); out != goldenLedger {
		t.Errorf("the copy stays:\n%s", out)
	}
}

// TestFoldAdoptsLongQuestion: a question that is longer than a request's may be is taken up with its own turn.
func TestFoldAdoptsLongQuestion(t *testing.T) {
	s := newStory(t).human()
	theirs := record0("CLR-42-001", "engineer", "architect", strings.Repeat("topic ", 50), "pending", 0)
	theirs.Thread[0].Body = strings.Repeat("why? ", 600)
	s.m.Spec.Topic, s.m.Spec.Question = cut(theirs.Topic, 200), cut(theirs.Thread[0].Body, maxBody)
	s.m.Spec.Imported, s.m.Ledger = theirs.ID, &theirs
	old := mustFold(t, nil, theirs)
	c := Record(s.m.Name, s.m.Spec, s.m.Decide().Status)
	if out := string(mustFold(t, old, c)); strings.Count(out, `"id"`) != 1 || !strings.Contains(out, theirs.Thread[0].Body) {
		t.Errorf("got\n%s", out)
	}
}

// TestFoldRenumbers: two branches gave one id twice; the request that got a new one moves.
func TestFoldRenumbers(t *testing.T) {
	a := answeredRecord(t)
	b := a
	b.Request, b.Topic = "cache", "Cache"
	both, err := Merge(mustFold(t, nil, a), mustFold(t, nil, b), 42)
	if err != nil {
		t.Fatal(err)
	}
	moved := b
	moved.ID = "CLR-42-002"
	out := string(mustFold(t, both, a, moved))
	if strings.Count(out, `"id": "CLR-42-001"`) != 1 || strings.Count(out, `"id": "CLR-42-002"`) != 1 {
		t.Errorf("got\n%s", out)
	}
}

// TestFoldReadsAnyCase: field names in other letters are read, as encoding/json does, and not doubled.
func TestFoldReadsAnyCase(t *testing.T) {
	ours := answeredRecord(t)
	old := strings.NewReplacer(`"id"`, `"ID"`, `"thread"`, `"Thread"`, `"body"`, `"Body"`).Replace(goldenLedger)
	ours.Status = "resolved"
	out := string(mustFold(t, []byte(old), ours))
	if want := strings.Replace(goldenLedger, `"answered"`, `"resolved"`, 1); out != want {
		t.Errorf("got\n%s", out)
	}
}

// FuzzFold: whatever stands in the file, a fold does not panic, is stable, and loses no unknown field.
func FuzzFold(f *testing.F) {
	f.Add([]byte(goldenLedger))
	f.Add([]byte(`{"issueNumber":42,"clarifications":[{"id":"CLR-42-003","x":[]}],"y":{}}`))
	ours := []schemas.Clarification{{ID: "CLR-42-001", Request: "q", From: "a", To: "b", Status: "pending", Round: 1}}
	f.Fuzz(func(t *testing.T, old []byte) {
		out, err := Fold(old, 42, ours)
		if err != nil {
			return
		}
		again, err := Fold(out, 42, ours)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("not stable: %v\n%q\n%q", err, out, again)
		}
		before, err := readFile(old, 42)
		after, err2 := readFile(out, 42)
		if err != nil || err2 != nil || len(after.extra) != len(before.extra) || len(after.records) < len(before.records) {
			t.Fatalf("lost something: %v %v\n%q\n%q", err, err2, old, out)
		}
		var any any
		if json.Unmarshal(out, &any) != nil {
			t.Fatalf("no JSON: %q", out)
		}
	})
}

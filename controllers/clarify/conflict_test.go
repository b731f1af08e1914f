package clarify

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestSides(t *testing.T) {
	const whole = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd\n"
	for text, want := range map[string]string{
		whole: "a\nb\nd\n|a\nc\nd\n",
		"<<<<<<< HEAD\nb\n||||||| base\nx\n=======\nc\n>>>>>>> other\n": "b\n|c\n",
		"<<<<<<< A\n=======\nc\n>>>>>>> B\n" + whole:                    "a\nb\nd\n|c\na\nc\nd\n",
		"a\nb\n":                              "", // no conflict
		"<<<<<<< HEAD\nb\n=======\nc\n":       "", // torn
		"<<<<<<< HEAD\nb\n>>>>>>> other\nc\n": "",
		"=======\nc\n>>>>>>> other\n":         "",
		"":                                    "",
	} {
		ours, theirs, ok := conflictSides([]byte(text))
		if got := string(ours) + "|" + string(theirs); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
	}
}

// TestUnite: both branches went on with one matter, and one of them asked another question.
func TestUnite(t *testing.T) {
	asked := func(id string) schemas.Clarification {
		return record0(id, "engineer", "architect", "topic "+id, "pending", 0)
	}
	answered := with(asked("CLR-42-001"), func(c *schemas.Clarification) {
		c.Status = "answered"
		c.Thread = append(c.Thread, other(1, "answer", "architect", "Dual layer.", 1))
	})
	ours, err := Fold(nil, 42, []schemas.Clarification{asked("CLR-42-001"), asked("CLR-42-002")})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Fold(nil, 42, []schemas.Clarification{answered})
	if err != nil {
		t.Fatal(err)
	}
	conflict := []byte("<<<<<<< HEAD\n" + string(ours) + "=======\n" + string(theirs) + ">>>>>>> other\n")
	got, err := Unite(conflict, 42)
	want, wantErr := Merge(ours, theirs, 42)
	if err != nil || wantErr != nil || !bytes.Equal(got, want) || !strings.Contains(string(got), "Dual layer.") ||
		!strings.Contains(string(got), "CLR-42-002") {
		t.Errorf("%v, %v:\n%s", err, wantErr, got)
	}
	for name, text := range map[string]string{
		"no conflict": string(ours), "torn": string(conflict[:len(conflict)-20]), "another issue": strings.ReplaceAll(
			string(conflict), `"issueNumber": 42`, `"issueNumber": 7`), "no JSON": "<<<<<<< A\n{\n=======\n}\n>>>>>>> B\n",
	} {
		if _, err := Unite([]byte(text), 42); !errors.Is(err, ErrNoLedger) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

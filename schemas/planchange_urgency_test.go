package schemas

import "testing"

func TestPlanChangeUrgency(t *testing.T) {
	const run = "dags/d/a-0123456789abcdef-1"
	for _, c := range []struct {
		run       string
		set, want Priority
	}{
		{"", "", High}, {run, "", High}, {"", Critical, Critical}, {run, Critical, High}, {run, Low, Low}, {"", Background, Background},
	} {
		if got := (&PlanChangeSpec{Run: c.run, Priority: c.set}).Urgency(); got != c.want {
			t.Errorf("run %q, priority %q: %q, want %q", c.run, c.set, got, c.want)
		}
	}
}

func TestPlanChangeContextWithoutSecrets(t *testing.T) {
	const key = "AKIAIOSFODNN7EXAMPLE"
	s := &PlanChangeSpec{Context: map[string]any{"a": []any{map[string]any{key: 1}, "use " + key}}}
	s.Default()
	want := `{"a":[{"[redacted:aws-access-key-id]":1},"use [redacted:aws-access-key-id]"]}`
	if got := s.ShownContext(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What an architect is told of a hand-off comes from records: a file that says more is none.
func TestHandoffSaysNoMore(t *testing.T) {
	for _, more := range []PlanChangeSpec{{Priority: Critical}, {BlockerType: "plan"}, {Context: map[string]any{"a": "Accept it."}}, {}} {
		s := more
		s.Target, s.Change, s.Reason, s.Node, s.Run = "dag/d", ChangeHandoff, "Full.", "a", "dags/d/a-0123456789abcdef-1"
		var r Report
		s.Check(&r)
		found := r.Findings()
		if says := more.Priority != "" || more.BlockerType != "" || more.Context != nil; says != (len(found) == 1) {
			t.Errorf("%+v: %v", s, found)
		}
	}
}

// A key twice is no answer: which value counts would depend on the reader.
func TestAnswerWithAKeyTwice(t *testing.T) {
	for answer, want := range map[string]string{
		`{"n": 3, "n": 4}`:               "the answer has the key n twice",
		`{"a": [{"n": 3, "\u006e": 4}]}`: "the answer has the key a[0].n twice",
		"{\"n\": \"\u0085\", \"n\": 4}":  "the answer has the key n twice",
		`{"n": {"n": 3}, "m": [1, 1]}`:   "",
		`"{\"n\": 3, \"n\": 4}"`:         "",
		`{"n": 3, "n"`:                   "",
	} {
		if _, err := AnswerValue(answer); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", answer, err, want)
		}
	}
	if _, err := ReadPlanAnswer(`{"edit": {"remove": ["a"], "remove": ["b"]}}`); err == nil || err.Error() != "the answer has the key edit.remove twice" {
		t.Error(err)
	}
}

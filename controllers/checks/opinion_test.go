package checks

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestReviews: what agents answer, and what is known then.
func TestReviews(t *testing.T) {
	t.Parallel()
	place := func(file string) (string, int, bool) { return file, 2, file == "a.go" }
	text := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }
	finding := func(place, severity string) string {
		return `{"findings":[{` + place + `,"severity":"` + severity + `","message":"m"}],"summary":"s"}`
	}
	for name, c := range map[string]struct {
		result string
		failOn Severity
		want   Outcome
		kept   int
	}{
		"nothing":            {`{"findings":[]}`, "", Passed, 0},
		"text":               {text(`{"findings":[],"summary":"use a ` + "```go block```" + `"}`), "", Passed, 0},
		"block":              {text("Fine.\n```json\n{\"findings\":[]}\n```\nBye."), "", Passed, 0},
		"low":                {finding(`"file":"a.go","line":2`, "low"), "", Failed, 1},
		"info":               {finding(`"file":"a.go","line":2`, "info"), "", Passed, 1},
		"less than failOn":   {finding(`"file":"a.go"`, "medium"), High, Passed, 1},
		"dots":               {finding(`"file":"./x/../a.go"`, "high"), High, Failed, 1},
		"all":                {finding(`"file":""`, "high"), "", Failed, 1},
		"no such line":       {finding(`"file":"a.go","line":3`, "high"), "", Unknown, 0},
		"no such file":       {finding(`"file":"b.go","line":1`, "high"), "", Unknown, 0},
		"prose":              {text("I approve this."), "", Unknown, 0},
		"empty":              {text(""), "", Unknown, 0},
		"no result":          {"", "", Unknown, 0},
		"cut":                {text(`{"findings":[`), "", Unknown, 0},
		"no list":            {`{"approved":true}`, "", Unknown, 0},
		"null":               {`{"findings":null}`, "", Unknown, 0},
		"another severity":   {finding(`"file":"a.go"`, "bad"), "", Unknown, 0},
		"two objects":        {text(`{"findings":[]} {"findings":[]}`), "", Unknown, 0},
		"a list":             {`[]`, "", Unknown, 0},
		"a block and no end": {text("```json\n{\"findings\":[]}"), "", Unknown, 0},
	} {
		e := EvidenceOfReview("ann", json.RawMessage(c.result), c.failOn, place)
		if e.Outcome != c.want || len(e.Findings) != c.kept || e.Tools[0].Tool != "agent/ann" {
			t.Errorf("%s: %+v", name, e)
		}
		if c.want == Unknown && (e.Tools[0].Reason == "" || e.Lets(true)) {
			t.Errorf("%s: it is let through, or says no reason: %+v", name, e)
		}
	}
	two := func(first, second string) string {
		return `{"findings":[{"file":"b.go","severity":"` + first + `","message":"m"},{"file":"a.go","severity":"` + second + `","message":"n"}]}`
	}
	for name, c := range map[string]struct {
		result string
		failOn Severity
		want   Outcome
	}{
		"lost and critical": {two("critical", "info"), "", Unknown},
		"lost and high":     {two("high", "medium"), High, Unknown},
		"lost and medium":   {two("medium", "low"), High, Passed},
		"lost, and another": {two("critical", "high"), High, Failed},
	} {
		e := EvidenceOfReview("ann", json.RawMessage(c.result), c.failOn, place)
		if e.Outcome != c.want || !strings.Contains(e.Tools[0].Reason, "1 finding left out") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	some := EvidenceOfReview("ann", json.RawMessage(`{"findings":[{"file":"a.go","severity":"high","message":"m"},{"file":"b.go","severity":"high","message":"n"}]}`), "", place)
	if text := some.Text(); !strings.Contains(text, "1 finding left out") || strings.Contains(text, "b.go") {
		t.Error(text)
	}
}

// TestFindingsOfBefore: who looks at the next change is told what became of the findings in the one before.
func TestFindingsOfBefore(t *testing.T) {
	t.Parallel()
	was := []Finding{{File: "a", Message: "one", Tool: "x"}, {File: "a", Message: "two", Tool: "x"}, {File: "a", Message: "three", Tool: "agent/ann", Category: reviewed}}
	Identify(was)
	is := []Finding{{File: "a", Message: "two", Tool: "x"}}
	Identify(is)
	now := &Evidence{Findings: is}
	got := now.Before(&Evidence{Findings: was, Failures: []Test{{Name: "T", Message: "no"}}})
	for _, want := range []string{"one (x; mended)", "two (x; still there)", "three (agent/ann; look whether it is mended)", "test T failed: no"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

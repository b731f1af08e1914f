package agentio

import (
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestReadReport(t *testing.T) {
	said, err := Read("json", []byte(`{"reconcile": 1, "status": "needs_handoff", "summary": " Half. ", "filesChanged": ["a.go"],
		"remaining": ["the  other\nhalf"], "progress": 50, "mood": {"b": 1},
		"observations": [{"category": "decision", "content": "Use a pool.", "anchors": ["a.go"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := said.Report
	if r.Status != schemas.ReportHandoff || r.Summary != "Half." || r.FilesChanged[0] != "a.go" || r.Remaining[0] != "the other half" || *r.Progress != 50 {
		t.Errorf("the report is %+v", r)
	}
	if string(r.Unknown) != `{"mood":{"b":1}}` {
		t.Errorf("unknown fields are %s", r.Unknown)
	}
	if len(said.Observed) != 1 || said.Observed[0].Content != "Use a pool." {
		t.Errorf("observations are %+v", said.Observed)
	}
}

func TestReadReportRefuses(t *testing.T) {
	for output, want := range map[string]string{
		`{"reconcile": 1, "sumary": "x"}`:                                                                              `did you mean "summary"?`,
		`{"reconcile": 1, "status": "finished"}`:                                                                       "is one of done, failed, needs_clarification, needs_handoff",
		`{"reconcile": 1, "status": "needs_clarification"}`:                                                            `add "clarification"`,
		`{"reconcile": 1, "progress": 101}`:                                                                            "0 to 100",
		`{"reconcile": 1, "observations": [{"category": "rumour", "content": "x"}]}`:                                   "rumour",
		`{"reconcile": 1, "observations": [{"category": "decision", "content": " "}]}`:                                 "content",
		`{"reconcile": 1, "observations": [{"category": "decision", "content": "` + strings.Repeat("x", 2001) + `"}]}`: "2001",
		`{"reconcile": 1, "filesChanged": "a.go"}`:                                                                     "filesChanged",
	} {
		if _, err := Read("json", []byte(output)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: the error is %v, want one with %q", output, err, want)
		}
	}
}

func TestReadReportOfFailure(t *testing.T) {
	said, err := Read("json", []byte(`{"reconcile": 1, "status": "failed", "summary": "no compiler"}`))
	if failed := (*failedError)(nil); !errors.As(err, &failed) || failed.Summary != "no compiler" {
		t.Errorf("the error is %v", err)
	}
	if said.Report == nil || said.Report.Status != schemas.ReportFailed {
		t.Errorf("the report is %+v", said.Report)
	}
}

// TestRepeatedPromptAsksNothing: an agent that prints its prompt word for word neither asks nor nearly asks.
func TestRepeatedPromptAsksNothing(t *testing.T) {
	prompt := pageWork().Stdin("prompt")
	said, err := Read("text", []byte(prompt))
	if err != nil || said.Ask != nil {
		t.Errorf("the prompt asks %+v, with the error %v", said.Ask, err)
	}
	if rest := WithoutPrompt(prompt+"New.\n", prompt); strings.TrimSpace(rest) != "New." {
		t.Errorf("what is not in the prompt is %q", rest)
	}
}

func TestFit(t *testing.T) {
	w := pageWork()
	w.Needs = map[string]Need{"small": {State: "Succeeded", Result: "ok"}, "large": {State: "Succeeded", Result: strings.Repeat("word ", 10000)},
		"larger": {State: "Succeeded", Result: strings.Repeat("word ", 20000)}}
	count := func(s string) int { return len(s) / 5 }
	whole := count(w.Stdin("prompt"))
	w.Fit(whole, count)
	if got := count(w.Stdin("prompt")); got != whole {
		t.Errorf("a prompt that fits went from %d to %d tokens", whole, got)
	}
	w.Fit(whole-1, count)
	if len(w.Helpers) != 0 || w.Needs["larger"].Result != strings.Repeat("word ", 20000) {
		t.Error("the commands that help do not go first")
	}
	w.Fit(15000, count)
	text := w.Stdin("prompt")
	if count(text) > 15000 || !strings.Contains(text, "[100002 bytes are left out here") || !strings.Contains(text, "word word") || !strings.Contains(text, `"ok"`) {
		t.Errorf("the prompt has %d tokens: %.2000s", count(text), text)
	}
}

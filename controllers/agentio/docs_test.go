package agentio

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// example is a block of the page with the note in front of it.
type example struct{ note, text string }

var noted = regexp.MustCompile("(?ms)^<!-- ([a-z ]+) -->\n```[a-z]+\n(.*?)^```$")

func examples(t *testing.T) []example {
	t.Helper()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	for _, m := range noted.FindAllStringSubmatch(string(page), -1) {
		all = append(all, example{m[1], m[2]})
	}
	if len(all) < 14 {
		t.Fatalf("only %d examples found", len(all))
	}
	return all
}

// TestPageShowsWhatAgentsRead: the examples are what this package writes.
func TestPageShowsWhatAgentsRead(t *testing.T) {
	work, question, files := pageWork(), pageQuestion(), pageFiles()
	want := map[string]string{
		"reads task prompt":     work.Stdin("prompt"),
		"reads task json":       work.Stdin("json"),
		"reads question prompt": Attach("prompt", question.Stdin("prompt"), files),
		"reads question json":   Attach("json", question.Stdin("json"), files),
	}
	for _, x := range examples(t) {
		kind, format, found := strings.Cut(strings.TrimPrefix(x.note, "reads "), " ")
		if !found || !strings.HasPrefix(x.note, "reads ") {
			continue
		}
		got := want[x.note]
		delete(want, x.note)
		if format == "json" && !sameJSON(t, got, x.text) || format == "prompt" && got != x.text {
			t.Errorf("a %s as %s is\n%s\nand the page shows\n%s", kind, format, got, x.text)
		}
	}
	for note := range want {
		t.Errorf("the page has no example %q", note)
	}
}

// sameJSON compares values; the instructions may be left out of the second.
func sameJSON(t *testing.T, got, shown string) bool {
	t.Helper()
	var a, b map[string]any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(shown), &b); err != nil {
		t.Fatalf("%v in\n%s", err, shown)
	}
	if b["instructions"] == "…" {
		b["instructions"] = a["instructions"]
	}
	return reflect.DeepEqual(a, b)
}

// TestPageShowsWhatOutputMeans: what is recorded of each printed example stands below it.
func TestPageShowsWhatOutputMeans(t *testing.T) {
	all := examples(t)
	checked := 0
	for i, x := range all {
		verb, format, _ := strings.Cut(x.note, " ")
		if verb != "prints" && verb != "answers" {
			continue
		}
		if i+1 == len(all) || all[i+1].note != "recorded" {
			t.Errorf("nothing is said of\n%s", x.text)
			continue
		}
		checked++
		if got := recorded(t, verb, format, x.text); !sameJSON(t, got, all[i+1].text) {
			t.Errorf("of\n%s\nthis is recorded: %s", x.text, got)
		}
	}
	if checked < 5 {
		t.Errorf("only %d examples of output", checked)
	}
}

// recorded is what the record of a run has of an output.
func recorded(t *testing.T, verb, format, output string) string {
	t.Helper()
	said, err := Read(format, []byte(output))
	if verb == "answers" {
		var answer string
		answer, err = ReadAnswer(format, []byte(output))
		said = Said{Result: json.RawMessage(strings.TrimSpace(encode(answer)))}
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	return encode(struct {
		Result     json.RawMessage `json:"result,omitempty"`
		Asks       *schemas.Ask    `json:"asks,omitempty"`
		Resolution string          `json:"resolution,omitempty"`
	}{said.Result, said.Ask, said.Resolution})
}

const pageTopic = "Database abstraction layer approach"

func pageThread() []schemas.ClarificationTurn {
	at := time.Date(2026, 2, 26, 10, 0, 0, 0, time.UTC)
	question := turn(1, "engineer", "question", "ADR-42 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?")
	answer := turn(1, "architect", "answer", "Use repository pattern with adapter. SQLite for dev, PostgreSQL for prod.")
	question.Timestamp, answer.Timestamp = schemas.NewTime(at), schemas.NewTime(at.Add(2*time.Minute))
	return []schemas.ClarificationTurn{question, answer}
}

func pageWork() *Work {
	zero := 0
	return &Work{
		Session: "health", DAG: "checks", Node: "implement", Agent: "engineer", Issue: 42, Attempt: 2,
		Role:   Role{Name: "engineer", Role: "engineer", Description: "Writes Go."},
		Prompt: "Implement the database layer.", About: Issue{Title: "Add a health endpoint"},
		Acceptance: []string{"go test ./... passes"}, Inputs: []string{"src/**/*.go"}, Constraints: []string{"You are ended after 10m."}, Helpers: []string{"reconcile preview: the change."},
		MayAsk: []string{"architect", "product-manager"}, Report: "text", Schema: json.RawMessage(`{"required":["files"],"type":"object"}`),
		Needs: map[string]Need{"plan": {State: "Succeeded", ExitCode: &zero, Result: map[string]any{"steps": 3}}},
		Clarifications: []Answered{{ID: "CLR-42-001", To: "architect", Topic: pageTopic,
			Status: schemas.ClarificationAnswered, Thread: pageThread()}},
		Refusals: []string{"SCOPE_VIOLATION: agent 'engineer' cannot clarify with 'reviewer'; " +
			"allowed: [architect, product-manager]"},
		Failure: &Failure{Reason: "exit code 3", Output: "cannot open src/db: no space left on device\n"},
	}
}

func pageQuestion() *Question {
	return &Question{
		ID: "CLR-42-001", Issue: 42, From: "engineer", To: "architect", Round: 2, Topic: pageTopic,
		Text:   "Should the adapter handle connection pooling or leave that to config?",
		Thread: pageThread(), IssueContext: "Add a health endpoint",
	}
}

func pageFiles() []Artifact {
	return []Artifact{
		{Path: "docs/adr/ADR-42.md", Text: "# ADR-42\n\nPostgreSQL.\n"},
		{Path: "docs/pool.md", Note: "not shown: it does not exist"},
	}
}

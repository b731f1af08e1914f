package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const (
	ledger42 = "state/clarifications/issue-42.json"
	question = `apiVersion: reconcile.dev/v1alpha1
kind: ClarificationRequest
metadata: {name: schema}
spec: {issue: 42, from: engineer, to: architect, topic: Schema, question: "Which one?"}
`
	agents = `apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: %s}
spec: {runner: {human: {}}}
`
)

// withQuestion adds a question with a status to a tree, and returns its record.
func withQuestion(t *testing.T, dir string, e Patient) schemas.Clarification {
	t.Helper()
	for _, a := range []string{"engineer", "architect"} {
		must(t, put(dir, "specs/agents/"+a+".yaml", fmt.Sprintf(agents, a)))
	}
	must(t, put(dir, "specs/schema.yaml", question))
	s, err := e.Open(true)
	must(t, err)
	defer s.Close()
	tree, err := s.Load(t.Context())
	must(t, err)
	entry := tree.Entry(schemas.Ref{Kind: "ClarificationRequest", Name: "schema"})
	if entry == nil || entry.Object == nil {
		t.Fatalf("the question is not there: %v", tree.Problems())
	}
	st := &schemas.ClarificationRequestStatus{ID: "CLR-42-001", Round: 1, MaxRounds: 5, Thread: []schemas.ThreadEntry{{
		ClarificationTurn: schemas.ClarificationTurn{Round: 1, From: "engineer", Type: "question", Body: "Which one?"},
		Source:            "request"}}}
	st.Phase, st.ObservedDigest = "pending", entry.Object.Digest
	data, err := state.EncodeStatus(entry.Ref, st)
	must(t, err)
	must(t, put(dir, entry.StatusPath, string(data)))
	return clarify.Record("schema", schemas.SpecAs[*schemas.ClarificationRequestSpec](entry.Object), st)
}

func ledgerText(t *testing.T, records ...schemas.Clarification) string {
	t.Helper()
	data, err := json.Marshal(schemas.Ledger{IssueNumber: 42, Clarifications: records})
	must(t, err)
	return string(data)
}

func TestLedgers(t *testing.T) {
	dir, e := newTree(t)
	ours := withQuestion(t, dir, e)
	theirs := schemas.Clarification{ID: "CLR-42-002", From: "a", To: "b", Status: "resolved"}
	far := theirs
	far.ID = "CLR-42-999999999"
	answered := ours
	answered.Status = "answered"
	nameless := ours
	nameless.Request = ""
	for name, c := range map[string]struct {
		text, want string
	}{
		"none":       {"", "differ about CLR-42-001"},
		"agrees":     {ledgerText(t, ours, theirs), ""},
		"behind":     {ledgerText(t, answered, theirs), "differ about CLR-42-001"},
		"nameless":   {ledgerText(t, nameless), "differ about CLR-42-001"},
		"gap":        {ledgerText(t, ours, far), "999999997 numbers missing, the first is CLR-42-002"},
		"twice":      {ledgerText(t, ours, theirs, theirs), "several records have the id CLR-42-002"},
		"another's":  {ledgerText(t, theirs), "1 number missing, the first is CLR-42-001"},
		"unreadable": {"{", ""},
	} {
		if c.text != "" {
			must(t, put(dir, ledger42, c.text))
		}
		examined := e
		done := examined.open(t.Context())
		fs := checkLedgers(t.Context(), &examined)
		done()
		text := ""
		for _, f := range fs {
			if f.Level != OK {
				text += f.Detail + "; "
			}
		}
		if (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// TestLedgersThatAreReadCanBeFolded checks that what loading takes for a ledger is one to a fold, too: else a run would
// find a ledger sound and never get to write into it.
func TestLedgersThatAreReadCanBeFolded(t *testing.T) {
	record := `{"id": "CLR-42-001", "from": "a", "to": "b", "topic": "t", "status": "pending", "thread": [{"round": 1}]}`
	read := 0
	for _, text := range []string{
		`{"issueNumber": 42, "clarifications": []}`,
		"\ufeff" + `{"issueNumber": 42, "clarifications": []}`,
		`{"issueNumber": 42, "clarifications": null}`,
		`{"issueNumber": 42}`, `{"clarifications": []}`, `{"issueNumber": 43, "clarifications": []}`, `[]`, `null`, ``, ` `,
		`{"issueNumber": 42, "clarifications": [` + record + `]}`,
		`{"issueNumber": 42, "clarifications": [` + record + `,` + record + `], "more": {"a": [1, null]}}`,
		`{"issueNumber": 42, "clarifications": [null]}`, `{"issueNumber": 42, "clarifications": [1]}`,
		`{"ISSUENUMBER": 42, "Clarifications": [` + strings.Replace(record, "id", "ID", 1) + `]}`,
		`{"issueNumber": 42, "clarifications": [` + strings.Replace(record, `"round": 1`, `"round": null, "x": "\ud800"`, 1) + `]}`,
		`{"issueNumber": 42, "clarifications": [` + strings.Replace(record, `"status": "pending"`, `"created": "2026-02-30T10:00:00Z"`, 1) + `]}`,
		`{"issueNumber": 42, "clarifications": [` + strings.Replace(record, `"status": "pending"`, `"thread": null, "status": "odd"`, 1) + `]}`,
		`{"issueNumber": 4.2e1, "clarifications": []}`, `{"issueNumber": 42, "clarifications": []} x`,
	} {
		_, err := state.ParseLedger(ledger42, []byte(text))
		_, ferr := clarify.Fold([]byte(text), 42, nil)
		if err == nil {
			read++
		}
		if err == nil && errors.Is(ferr, clarify.ErrNoLedger) {
			t.Errorf("%s is read, and not folded: %v", text, ferr)
		}
	}
	if read < 5 {
		t.Errorf("only %d were read", read)
	}
}

package loop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

const foreignLedger = `{"issueNumber": 7, "clarifications": [{"id": "CLR-7-001", "from": "engineer", "to": "architect",
"topic": "Theirs", "blocking": false, "status": "pending", "round": 1, "maxRounds": 6, "created": "2026-02-26T10:00:00Z",
"staleAfter": "2126-02-26T10:30:00Z", "resolvedAt": null, "thread": [{"round": 1, "from": "engineer", "type": "question",
"body": "Whose is it?", "timestamp": "2026-02-26T10:00:00Z"}]}]}
`

// Another program takes the number that a question was about to get, at any moment of the run. The question is told of
// once, under the number that it has in the end.
func TestAnnounceTheNumberInTheLedger(t *testing.T) {
	for moment := range 20 {
		dir := t.TempDir()
		put(t, dir, "specs/agents/engineer.yaml", fmt.Sprintf(envelope, "Agent", "engineer", "  canClarify: [architect]\n"+
			"  runner: {human: {}}"))
		put(t, dir, "specs/agents/architect.yaml", fmt.Sprintf(envelope, "Agent", "architect", "  runner: {human: {}}"))
		put(t, dir, "specs/clarificationrequests/ours.yaml", fmt.Sprintf(envelope, "ClarificationRequest", "ours",
			"  {issue: 7, from: engineer, to: architect, topic: Ours, question: \"Whose else?\"}"))
		l := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		looks, theirs := 0, false
		l.Now = func() time.Time {
			if looks++; looks == moment+1 {
				theirs = putForeign(t, dir)
			}
			return time.Now()
		}
		told := map[string][]string{} // topics to numbers
		l.Record = func(list []settle.Event) {
			for _, e := range list {
				if c := e.Clarified; c != nil && c.Type == settle.ClarificationRequested {
					told[c.Topic] = append(told[c.Topic], c.ClarificationID)
				}
			}
		}
		r, err := l.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := "CLR-7-001"
		if theirs {
			want = "CLR-7-002"
		}
		e := r.Tree.Entry(schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: "ours"})
		if id := e.Status().(*schemas.ClarificationRequestStatus).ID; id != want || fmt.Sprint(told["Ours"]) != "["+want+"]" {
			t.Errorf("moment %d: the number is %s, told %v; want %s", moment, id, told["Ours"], want)
		}
	}
}

// putForeign writes the ledger of another program, and reports whether there was none yet.
func putForeign(t *testing.T, dir string) bool {
	const path = "state/clarifications/issue-7.json"
	if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
		return false
	}
	put(t, dir, path, foreignLedger)
	return true
}

// TestAskAfterDamage: a ledger of closed questions of another program is cut off within the second. The first is kept, and
// no number is given again.
func TestAskAfterDamage(t *testing.T) {
	const closed = `{"id": "CLR-51-00%d", "from": "engineer", "to": "architect", "topic": "Theirs", "blocking": false,
"status": "resolved", "round": 1, "maxRounds": 6, "created": "2026-02-26T10:00:00Z", "staleAfter": "2026-02-26T10:30:00Z",
"resolvedAt": "2026-02-26T10:10:00Z", "cost": %d, "thread": []}`
	const path = "state/clarifications/issue-51.json"
	for name, damaged := range map[string]string{
		"torn": fmt.Sprintf(`{"issueNumber": 51, "clarifications": [`+closed+", "+closed, 1, 11, 2, 12)[:500],
		"of a wrong type": fmt.Sprintf(`{"issueNumber": 51, "clarifications": [`+closed+`, {"id": "CLR-51-002", "round": "x"}]}`,
			1, 11),
	} {
		dir := t.TempDir()
		put(t, dir, "specs/agents/engineer.yaml", fmt.Sprintf(envelope, "Agent", "engineer", "  canClarify: [architect]\n"+
			"  runner: {human: {}}"))
		put(t, dir, "specs/agents/architect.yaml", fmt.Sprintf(envelope, "Agent", "architect", "  runner: {human: {}}"))
		put(t, dir, "specs/clarificationrequests/ours.yaml", fmt.Sprintf(envelope, "ClarificationRequest", "ours",
			"  {issue: 51, from: engineer, to: architect, topic: Ours, question: \"Whose else?\"}"))
		put(t, dir, path, damaged)
		r, err := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded))).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := r.Tree.Ledger(51)
		if l == nil || len(l.Records()) != 2 || l.Records()[0].Topic != "Theirs" || l.Records()[1].ID != "CLR-51-003" {
			t.Errorf("%s: %+v", name, l)
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil || !strings.Contains(string(text), `"cost": 11`) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		aside, err := os.ReadFile(filepath.Join(dir, ".reconcile/damaged", path+".1"))
		switch kept := strings.Contains(string(text), `"round": "x"`); {
		case name == "torn" && (err != nil || string(aside) != damaged):
			t.Errorf("%s: set aside is %q, %v", name, aside, err)
		case name != "torn" && (err == nil || !kept): // one record cannot be used: nothing has to be set aside
			t.Errorf("%s: set aside is %q, and this is left:\n%s", name, aside, text)
		}
	}
}

// TestWarnOfUnknownStatus: another program gave a record of ours a status that does not exist. It is set back, and told of
// once.
func TestWarnOfUnknownStatus(t *testing.T) {
	const path = "state/clarifications/issue-7.json"
	dir := t.TempDir()
	put(t, dir, "specs/agents/engineer.yaml", fmt.Sprintf(envelope, "Agent", "engineer", "  canClarify: [architect]\n"+
		"  runner: {human: {}}"))
	put(t, dir, "specs/agents/architect.yaml", fmt.Sprintf(envelope, "Agent", "architect", "  runner: {human: {}}"))
	put(t, dir, "specs/clarificationrequests/ours.yaml", fmt.Sprintf(envelope, "ClarificationRequest", "ours",
		"  {issue: 7, from: engineer, to: architect, topic: Ours, question: \"Whose else?\"}"))
	var ledgers, told []string
	for range 3 {
		l := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		l.Warn = func(text string) { told = append(told, text) }
		if _, err := l.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if ledgers = append(ledgers, string(text)); len(ledgers) == 1 {
			put(t, dir, path, strings.Replace(string(text), `"status": "pending"`, `"status": "paused"`, 1))
		}
	}
	const want = path + `: CLR-7-001 has the status "paused", which does not exist; it is set back to pending`
	if fmt.Sprint(told) != "["+want+"]" || ledgers[0] != ledgers[1] || ledgers[1] != ledgers[2] {
		t.Errorf("told %q; ledgers:\n%s", told, strings.Join(ledgers, "\n"))
	}
}

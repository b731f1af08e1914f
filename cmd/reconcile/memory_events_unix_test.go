//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// remembered is the next event about the memory.
func (f *followed) remembered() *settle.Remembered {
	f.t.Helper()
	e := f.next()
	for e.Memory == nil {
		e = f.next()
	}
	if e.Ref != "agent/"+e.Memory.Agent || e.Type != events.Normal || e.Message == "" {
		f.t.Errorf("the event is %+v", e)
	}
	return e.Memory
}

const (
	memoryAgent = "echo '## Decisions'; " +
		"echo '- Use the repository pattern for the database, because it keeps SQL in one place.'"
	byHand = `apiVersion: reconcile.dev/v1alpha1
kind: Observation
metadata: {name: by-hand}
spec:
  agent: engineer
  issue: 29
  timestamp: 2026-02-27T09:00:00Z
  entries:
    - {category: decision, content: Chose per-issue JSON files for the storage of observations.}
    - {category: key-fact, content: The adapter reads its settings from the environment.}
`
)

// T12: memory-stored and memory-recalled fire, whatever stores and recalls: a spec by hand, a command, a hook, the run of
// an agent. Each is told once, in order, with the payload of the specification, to those who follow and to those who
// read the log later.
func TestT12_EventsFireOnStoreAndRecall(t *testing.T) {
	const now = "2026-02-27T10:00:00Z"
	at := clockTime(now).UnixMilli()
	p := newProgram(t)
	p.write("conversation.jsonl", `{"role": "assistant", "content": "## Errors Encountered\n`+
		`- The migration failed because the lock was held by another process."}`)
	p.write("agent.sh", memoryAgent)
	p.run(now, "-q")
	f := p.follow()

	p.write("specs/observations/by-hand.yaml", byHand)
	p.run(now, "-q")
	first := f.remembered()
	tokens := first.TotalTokens
	want := &settle.Remembered{Type: "memory-stored", Agent: "engineer", IssueNumber: 29, Count: 2, TotalTokens: tokens,
		ObservationIDs: first.ObservationIDs, Timestamp: at}
	if !reflect.DeepEqual(first, want) || tokens < 10 || tokens > 40 || len(first.ObservationIDs) != 2 ||
		!schemas.IsObservationID(first.ObservationIDs[0]) {
		t.Errorf("the spec: %+v, want %+v", first, want)
	}

	expect := func(what, typ, agent string, issue, count int) *settle.Remembered {
		t.Helper()
		got := f.remembered()
		if got.Type != typ || got.Agent != agent || got.IssueNumber != issue || got.Count != count || got.Timestamp != at ||
			got.TotalTokens < 10 || len(got.ObservationIDs) != count {
			t.Errorf("%s: %+v, want %s of %s on issue %d, %d", what, got, typ, agent, issue, count)
		}
		return got
	}
	p.run(now, "-q", "memory", "capture", "--agent", "architect", "--issue", "30", "conversation.jsonl")
	expect("capture", "memory-stored", "architect", 30, 1)
	p.run(now, "-q", "memory", "recall", "--agent", "architect", "--issue", "29")
	if got := expect("recall", "memory-recalled", "architect", 29, 2); got.TotalTokens <= tokens {
		t.Errorf("the section has %d tokens, what it quotes %d", got.TotalTokens, tokens)
	}
	p.run(now, "-q", "hook", "start", "--agent", "engineer", "--issue", "30")
	expect("hook start", "memory-recalled", "engineer", 30, 1)
	p.write("end.jsonl", `{"role": "assistant", "content": "## Code Changes\n`+
		`- Renamed the package storage to store in src/store/store.go."}`)
	p.run(now, "-q", "hook", "finish", "--agent", "engineer", "--issue", "30", "--transcript", "end.jsonl")
	expect("hook finish", "memory-stored", "engineer", 30, 1)

	p.write("specs/agents/engineer.yaml", agentSpec("engineer", "runner: {command: {argv: [sh, agent.sh]}}"))
	p.write("specs/sessions/s.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Session\n"+
		"metadata: {name: s}\nspec: {issue: 29}\n")
	p.write("specs/dags/d.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\n"+
		"spec: {session: s, nodes: [{name: one, agent: engineer, prompt: Build it.}]}\n")
	p.run(now, "-q")
	kinds := map[string]*settle.Remembered{}
	for range 2 {
		m := f.remembered()
		kinds[m.Type] = m
	}
	if r, s := kinds["memory-recalled"], kinds["memory-stored"]; r == nil || s == nil || r.Count != 2 || s.Count != 1 ||
		r.IssueNumber != 29 || s.IssueNumber != 29 || r.Agent != "engineer" || s.Agent != "engineer" {
		t.Errorf("the run of an agent: recalled %+v, stored %+v", r, s)
	}
	p.checkLog(map[string]int{"memory-stored": 4, "memory-recalled": 3})
}

// checkLog checks how many events of each type the log has, and the names of the fields of their payload.
func (p *program) checkLog(want map[string]int) {
	p.t.Helper()
	for typ, n := range want {
		out, err := p.command("", "events", "--type", typ, "-o", "json").Output()
		var list []struct {
			Memory map[string]any
		}
		if err != nil || json.Unmarshal(out, &list) != nil || len(list) != n {
			p.t.Errorf("%s: %d events, want %d: %v\n%s", typ, len(list), n, err, out)
		}
		for _, e := range list {
			for _, field := range []string{"agent", "issueNumber", "count", "totalTokens", "observationIds", "timestamp"} {
				if e.Memory[field] == nil {
					p.t.Errorf("%s lacks %s: %v", typ, field, e.Memory)
				}
			}
		}
	}
	p.command("", "-q").Run() //nolint:errcheck // only that nothing is told again
	data, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(events.Path)))
	if n := strings.Count(string(data), `"memory-`); err != nil || n != 7 {
		p.t.Errorf("after one more run the log has %d events about the memory: %v", n, err)
	}
}

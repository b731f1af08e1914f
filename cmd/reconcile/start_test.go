package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
)

// readIssue is issue 7 of octo/widgets at an address, as GitHub's API has it. While away is set the server fails.
type readIssue struct {
	url   string
	away  atomic.Bool
	asked atomic.Int32
}

func serveIssue(t *testing.T) *readIssue {
	t.Helper()
	i := &readIssue{}
	answers := map[string]any{
		"/repos/octo/widgets/issues/7": fields{"number": 7, "title": "Greet people\nby name", "body": "Say <private>the cost</private> hello.", "state": "open"},
		"/repos/octo/widgets/issues/7/comments": []fields{
			{"id": 1, "body": "Politely, please.", "user": fields{"login": "ann", "type": "User"}},
			{"id": 2, "body": "Built.", "user": fields{"login": "ci[bot]", "type": "Bot"}},
			{"id": 3, "body": "/start feature", "user": fields{"login": "ann", "type": "User"}},
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		i.asked.Add(1)
		answer, known := answers[q.URL.Path]
		switch {
		case i.away.Load():
			w.WriteHeader(http.StatusForbidden) // at once, where a server that fails is asked again
		case !known || q.Header.Get("Authorization") != "Bearer secret-token":
			w.WriteHeader(http.StatusNotFound)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(s.Close)
	i.url = s.URL + "/"
	return i
}

const readTree = `apiVersion: reconcile.dev/v1alpha1
kind: Settings
metadata: {name: settings}
spec: {github: {repo: octo/widgets}}
`

const readAgent = `apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: ann}
spec: {role: lead, runner: {human: {contact: ann}}}
`

const readWriter = `apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: writer}
spec: {role: writer, workspace: inPlace, runner: {command: {argv: [sh, -c, 'cat > /dev/null; echo done']}}}
`

const readWorkflow = `apiVersion: reconcile.dev/v1alpha1
kind: Workflow
metadata: {name: feature}
spec: {steps: [{id: write, agent: writer, prompt: "{{ issue.title }}: {{ issue.text }} {{ issue.comments }}"}, {id: ask, agent: ann, needs: [write]}]}
`

// TestStartReadsTheIssue: a start without a text takes that of GitHub, once, and keeps it in its session.
func TestStartReadsTheIssue(t *testing.T) {
	t.Parallel()
	issue, dir := serveIssue(t), t.TempDir()
	writeFiles(t, dir, map[string]string{"reconcile.yaml": readTree, "specs/agents/ann.yaml": readAgent, "specs/agents/writer.yaml": readWriter,
		"specs/workflows/feature.yaml": readWorkflow})
	env := map[string]string{"GITHUB_API_URL": issue.url, "GITHUB_TOKEN": "secret-token"}
	do := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now, engine: engine.Run,
			getenv: func(name string) string { return env[name] }}
		if code := a.main(t.Context(), append([]string{"-C", dir}, args...)); code != want {
			t.Fatalf("%q: exit %d, want %d: %s", args, code, want, out.String())
		}
		return out.String()
	}
	start := []string{"start", "feature", "--issue", "7"}

	delete(env, "GITHUB_TOKEN")
	if said := do(exitUsage, start...); !strings.Contains(said, "Neither GITHUB_TOKEN nor GH_TOKEN is set") || !strings.Contains(said, "--issue-file FILE") {
		t.Errorf("without a token: %s", said)
	}
	writeFiles(t, dir, map[string]string{"specs/actions/go.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: go}\n" +
		"spec: {verb: start, target: workflow/feature, issue: 7}\n"})
	if said := do(0, "run"); !strings.Contains(said, "action/go waits: issue 7 cannot be read: neither GITHUB_TOKEN nor GH_TOKEN is set") {
		t.Errorf("a committed start without a token: %s", said)
	}
	env["GITHUB_TOKEN"] = "secret-token"
	issue.away.Store(true)
	if said := do(1, append(start, "--reason", "again")...); !strings.Contains(said, "nothing was started yet: workflow/feature cannot start: issue 7: nothing says what the issue is about") {
		t.Errorf("without an answer: %s", said)
	}
	issue.away.Store(false)
	do(0, "run")
	asked := issue.asked.Load()
	if said := do(0, "describe", "action/go"); !strings.Contains(said, "started dag/feature-7") {
		t.Errorf("the committed start: %s", said)
	}
	said := do(0, "prompt", "dag/feature-7", "write")
	for _, want := range []string{"Greet people by name", "Say", "hello.", "ann:", "Politely, please."} {
		if !strings.Contains(said, want) {
			t.Errorf("the prompt lacks %q: %s", want, said)
		}
	}
	for _, no := range []string{"the cost", "Built.", "/start"} {
		if strings.Contains(said, no) {
			t.Errorf("the prompt has %q: %s", no, said)
		}
	}
	do(0, "run")
	do(0, start...)
	if issue.asked.Load() != asked {
		t.Error("the issue was read twice")
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "specs", "sessions", "*")); len(all) != 1 {
		t.Errorf("sessions: %q", all)
	}
}

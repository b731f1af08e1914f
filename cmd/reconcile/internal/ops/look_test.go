package ops_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

// git runs git commands in the tree.
func git(t *testing.T, env ops.Env, commands ...string) {
	t.Helper()
	for _, c := range commands {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, strings.Fields(c)...)...)
		cmd.Dir = env.Tree.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", c, err, out)
		}
	}
}

func badRequest(t *testing.T, err error, text string) {
	t.Helper()
	if ops.CodeOf(err) != ops.BadRequest || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want a bad request with %q", err, text)
	}
}

// numbered returns the environment of a tree whose clarification has an id.
func numbered(t *testing.T) ops.Env {
	t.Helper()
	env := open(t)
	const file = "state/clarificationrequests/db-layer.json"
	data, err := os.ReadFile(filepath.Join(env.Tree.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	write(t, env, file, strings.Replace(string(data), `"observedDigest"`, `"id": "CLR-42-001", "observedDigest"`, 1))
	return env
}

func TestGet(t *testing.T) {
	env := open(t)
	write(t, env, "specs/broken.yaml", "nonsense\n")
	names := func(q ops.GetRequest) string {
		t.Helper()
		r, err := ops.Get(t.Context(), env, q)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range r.Entries {
			out = append(out, e.Ref.String())
		}
		return strings.Join(out, " ")
	}
	for want, q := range map[string]ops.GetRequest{
		"dag/checks":                                {What: []string{"dag", "checks"}},
		"session/health dag/checks":                 {What: []string{"session/health", "dag/checks"}},
		"dag/checks agent/architect agent/engineer": {What: []string{"dags,agents,dag"}},
		"": {What: []string{"dags"}, Selector: "team=web"},
	} {
		if got := names(q); got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
	r, err := ops.Get(t.Context(), env, ops.GetRequest{})
	if err != nil || !r.All || len(r.Nameless) != 1 || len(r.Entries) < 10 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = ops.Get(t.Context(), env, ops.GetRequest{What: []string{"dag/checks"}})
	if err != nil || !r.Single || ops.NewObject(r.Entries[0]).Metadata.Labels["team"] != "core" {
		t.Errorf("%+v, %v", r, err)
	}
	get := func(what string) error {
		_, err := ops.Get(t.Context(), env, ops.GetRequest{What: []string{what}})
		return err
	}
	badRequest(t, get("dagz"), `did you mean "dag"?`)
	if err := get("dag/check"); ops.CodeOf(err) != ops.Failure || !strings.Contains(err.Error(), `did you mean "checks"?`) {
		t.Error(err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Get(ctx, env, ops.GetRequest{})
		return err
	})
}

func TestDescribeNode(t *testing.T) {
	env := numbered(t)
	v, err := ops.DescribeNode(t.Context(), env, ops.DescribeRequest{Object: "dag/checks"}, "unit_tests")
	if err != nil || v.Spec.Name != "unit_tests" || v.Status.State == "" {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err = ops.DescribeNode(t.Context(), env, ops.DescribeRequest{Object: "dag/checks"}, "nothing"); err == nil {
		t.Error("a node that does not exist is described")
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.DescribeNode(ctx, env, ops.DescribeRequest{Object: "dag/checks"}, "unit_tests")
		return err
	})
}

func TestDescribe(t *testing.T) {
	env := numbered(t)
	d, err := ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "agent/engineer"})
	if err != nil || d.Path != "specs/agents/engineer.yaml" || !slices.Contains(d.Referrers, "dag/checks") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "CLR-42-001"}); err != nil || d.Kind != "ClarificationRequest" {
		t.Errorf("%+v, %v", d, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Describe(ctx, env, ops.DescribeRequest{Object: "dag/checks"})
		return err
	})
}

func TestHistory(t *testing.T) {
	env := open(t)
	q := ops.HistoryRequest{Object: "session/health", At: "HEAD", Limit: 5}
	_, err := ops.History(t.Context(), env, q)
	badRequest(t, err, "git repository")
	git(t, env, "init -q", "add .", "commit -qm First")
	write(t, env, "specs/sessions/health.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: health}\n"+
		"spec: {owner: somebody, title: Another}\n")
	git(t, env, "commit -qam Second")
	r, err := ops.History(t.Context(), env, q)
	if err != nil || len(r.Changes) != 2 || r.Changes[0].Subject != "Second" || r.Changes[1].Note != "spec created" {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.ContainsFunc(r.Changes[0].Spec, func(c ops.FieldChange) bool { return c.Field == "spec.title" && string(c.Now) == `"Another"` }) {
		t.Errorf("changed: %+v", r.Changes[0].Spec)
	}
	if r, err := ops.Get(t.Context(), env, ops.GetRequest{What: []string{"session/health"}, At: "HEAD~1"}); err != nil ||
		schemas.SpecAs[*schemas.SessionSpec](r.Entries[0].Object).Owner == "somebody" {
		t.Errorf("at the first commit: %+v, %v", r, err)
	}
	q.Limit = 0
	_, err = ops.History(t.Context(), env, q)
	badRequest(t, err, "at least 1")
}

func TestGraph(t *testing.T) {
	env := open(t)
	g, err := ops.Graph(t.Context(), env, ops.GraphRequest{Object: "dag/checks"})
	if err != nil || len(g.Nodes) != 4 || !slices.Equal(g.Nodes[3].Needs, []string{"unit_tests", "lint"}) {
		t.Errorf("%+v, %v", g, err)
	}
	_, err = ops.Graph(t.Context(), env, ops.GraphRequest{Object: "session/health"})
	badRequest(t, err, "has no graph")
}

const eventLine = `{"time":"2026-03-01T11:00:00Z","type":"Normal","reason":"R","ref":"dag/checks","message":"%"}` + "\n"

func TestEvents(t *testing.T) {
	env := open(t)
	write(t, env, events.Path, strings.ReplaceAll(eventLine, "%", "one"))
	for want, q := range map[int]ops.EventsRequest{1: {Object: "dag/checks"}, 0: {Since: time.Minute}} {
		if list, err := ops.Events(t.Context(), env, q); err != nil || len(list) != want {
			t.Errorf("%+v: %v, %v", q, list, err)
		}
	}
	_, err := ops.Events(t.Context(), env, ops.EventsRequest{Type: "Warnin"})
	badRequest(t, err, `did you mean "Warning"?`)
}

// TestFollowEvents: what is added is seen, a caller can stop, and the end of the context is the end.
func TestFollowEvents(t *testing.T) {
	env := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []string
	for b, err := range ops.FollowEvents(ctx, env, ops.EventsRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			seen = append(seen, e.Message)
		}
		switch len(seen) {
		case 0:
			write(t, env, events.Path, strings.ReplaceAll(eventLine, "%", "one"))
		case 1:
			write(t, env, events.Path, strings.ReplaceAll(eventLine, "%", "one")+strings.ReplaceAll(eventLine, "%", "two"))
		case 2:
			cancel()
		}
	}
	if !slices.Equal(seen, []string{"one", "two"}) {
		t.Errorf("seen %q", seen)
	}
	for range ops.FollowEvents(t.Context(), env, ops.EventsRequest{}) {
		break
	}
}

func TestFind(t *testing.T) {
	env := numbered(t)
	find := func(word string) (string, error) {
		d, err := ops.Describe(t.Context(), env, ops.DescribeRequest{Object: word})
		if err != nil {
			return "", err
		}
		return d.Entry.Ref.String(), nil
	}
	for word, want := range map[string]string{
		"dag/checks": "dag/checks", "dags/checks": "dag/checks", "CLR-42-001": "clarificationrequest/db-layer",
		"request/clr-42-1": "clarificationrequest/db-layer",
	} {
		if got, err := find(word); err != nil || got != want {
			t.Errorf("%s: %s, %v", word, got, err)
		}
	}
	for word, want := range map[string]string{
		"dag/chekcs": `did you mean "checks"?`, "checks": `"checks" is not kind/name; did you mean dag/checks?`, "no": "is not kind/name, for example", "CLR-42-002": `did you mean "CLR-42-001"?`,
		"CLR-43-001": "nothing was asked about issue 43", "observation/x": "lists what there is",
	} {
		if _, err := find(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
	env.Tree.Dir = t.TempDir()
	write(t, env, "reconcile.yaml", "")
	if _, err := find("dag/x"); err == nil || !strings.Contains(err.Error(), "the tree has no dag at all") {
		t.Error(err)
	}
}

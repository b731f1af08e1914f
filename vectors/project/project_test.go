package project_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/project"
)

var specs = map[string]string{
	"specs/agents/engineer.yaml":  "kind: Agent\nmetadata: {name: engineer}\nspec: {runner: {command: {argv: [cat]}}}\n",
	"specs/agents/architect.yaml": "kind: Agent\nmetadata: {name: architect}\nspec: {runner: {command: {argv: [cat]}}}\n",
	"specs/sessions/login.yaml": `kind: Session
metadata: {name: login, labels: {team: core}}
spec: {title: Log in, description: People log in., issue: 7, owner: ada, branch: login}
`,
	"specs/workflows/flow.yaml": `kind: Workflow
metadata: {name: flow}
spec: {title: The flow, steps: [{id: plan, agent: architect, title: Make a plan}]}
`,
	"specs/dags/build.yaml": `kind: DAG
metadata: {name: build}
spec:
  session: login
  issue: 7
  nodes:
  - {name: make, run: [make, all], outputs: {files: [bin/app.go, docs/app.md]}}
  - {name: test, run: [make, test], needs: [make]}
`,
	"specs/planchanges/more.yaml": `kind: PlanChange
metadata: {name: more}
spec: {target: dag/build, node: test, change: fix, reason: No access to the store., tried: [asking], by: engineer}
`,
	"specs/clarificationrequests/which.yaml": `kind: ClarificationRequest
metadata: {name: which}
spec: {from: engineer, to: architect, topic: Which store, question: "Files or a database?", issue: 7, artifacts: [docs/store.md]}
`,
}

// tree is the specs as a run sees them.
func tree(t *testing.T) *state.Tree {
	t.Helper()
	dir := t.TempDir()
	for p, text := range specs {
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("apiVersion: reconcile.dev/v1alpha1\n"+text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	tr, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// entry is the only object of a kind, with a status.
func entry(t *testing.T, tr *state.Tree, kind string, status schemas.Status) *state.Entry {
	t.Helper()
	all := tr.Entries(kind)
	if len(all) != 1 || all[0].Object == nil {
		for _, e := range all {
			t.Errorf("%s: %v", e.Ref, e.Problems)
		}
		t.Fatalf("%d objects of kind %s", len(all), kind)
	}
	e := *all[0]
	e.SetStatus(status)
	return &e
}

func show(p graph.Part) string {
	var b strings.Builder
	for i := range p.Items {
		it := &p.Items[i]
		fmt.Fprintf(&b, "%s %s %q %s at %d %v\n  %s\n", it.ID, it.Type, it.Name, it.Path, it.At, it.Labels, it.Title)
		for line := range strings.Lines(it.Body) {
			b.WriteString("  | " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "%s %s %s\n", e.From, e.Type, e.To)
	}
	return b.String()
}

func TestObjects(t *testing.T) {
	t.Parallel()
	tr := tree(t)
	ended := schemas.Time{Time: time.Unix(1_700_000_000, 0).UTC()}
	active := schemas.Common{Phase: "Active"}
	for _, c := range []struct {
		kind   string
		status schemas.Status
		want   string
	}{
		{"Session", nil, `session/login session "login" specs/sessions/login.yaml at 0 [issue=7 kind=session owner=ada team=core]
  Log in
  | People log in.
  | login
`},
		{"Session", &schemas.SessionStatus{Common: active}, `session/login session "login" specs/sessions/login.yaml at 0 [issue=7 kind=session owner=ada phase=Active team=core]
  Log in
  | People log in.
  | login
`},
		{"Workflow", nil, `workflow/flow workflow "flow" specs/workflows/flow.yaml at 0 [kind=workflow]
  The flow
  | plan architect
  | Make a plan
`},
		{"DAG", nil, `dag/build dag "build" specs/dags/build.yaml at 0 [issue=7 kind=dag session=login]
  build
  | make test
dag/build:make task "make" specs/dags/build.yaml at 0 [kind=dag]
  build make
  | make all
dag/build:test task "test" specs/dags/build.yaml at 0 [kind=dag]
  build test
  | make test
session/login contains dag/build
dag/build contains dag/build:make
dag/build:make modified bin/app.go
dag/build:make references docs/app.md
dag/build contains dag/build:test
dag/build:test follows dag/build:make
`},
		{"DAG", &schemas.DAGStatus{Common: schemas.Common{Phase: "Failed"}, FinishedAt: ended, Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{
			"test": {State: "Failed", Message: "exit 1", Result: json.RawMessage(`{"lines":3}`), Output: "it broke", FinishedAt: ended},
		})}, `dag/build dag "build" specs/dags/build.yaml at 1700000000 [issue=7 kind=dag phase=Failed session=login]
  build
  | make test
dag/build:make task "make" specs/dags/build.yaml at 0 [kind=dag]
  build make
  | make all
dag/build:test task "test" specs/dags/build.yaml at 1700000000 [kind=dag state=Failed]
  build test
  | make test
  | exit 1
  | {"lines":3}
  | it broke
session/login contains dag/build
dag/build contains dag/build:make
dag/build:make modified bin/app.go
dag/build:make references docs/app.md
dag/build contains dag/build:test
dag/build:test follows dag/build:make
`},
		{"ClarificationRequest", nil, `clarificationrequest/which clarification "which" specs/clarificationrequests/which.yaml at 0 [from=engineer issue=7 kind=clarificationrequest to=architect]
  Which store
  | Files or a database?
clarificationrequest/which references docs/store.md
`},
		{"ClarificationRequest", &schemas.ClarificationRequestStatus{ID: "CLR-1", Created: ended, Summary: "Files.", Thread: []schemas.ThreadEntry{
			{ClarificationTurn: schemas.ClarificationTurn{From: "engineer", Body: "Files or a database?"}},
			{ClarificationTurn: schemas.ClarificationTurn{From: "architect", Body: "Files, they merge."}},
		}}, `clarificationrequest/which clarification "which" specs/clarificationrequests/which.yaml at 1700000000 [clr=CLR-1 from=engineer issue=7 kind=clarificationrequest to=architect]
  Which store
  | Files.
  | Files or a database?
  | architect: Files, they merge.
clarificationrequest/which references docs/store.md
`},
		{"PlanChange", nil, `planchange/more decision "more" specs/planchanges/more.yaml at 0 [by=engineer change=fix kind=planchange]
  blocker of dag/build test: No access to the store.
  | No access to the store.
  | asking
dag/build:test causes planchange/more
`},
		{"PlanChange", &schemas.PlanChangeStatus{Common: schemas.Common{Phase: "Applied"}, Created: ended, Changes: []string{"adds login"},
			Answer: &schemas.PlanAnswer{Accept: true, Reason: "Sure.", Instructions: "Use the key."}}, `planchange/more decision "more" specs/planchanges/more.yaml at 1700000000 [by=engineer change=fix kind=planchange phase=Applied]
  blocker of dag/build test: No access to the store.
  | No access to the store.
  | asking
  | Sure.
  | Use the key.
  | adds login
dag/build:test causes planchange/more
`},
	} {
		p := controllers.Kinds.Row(c.kind).Index.Part(entry(t, tr, c.kind, c.status), nil)
		if got := show(p); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.kind, got, c.want)
		}
		for i := range p.Items {
			if err := graph.CheckNode(&p.Items[i].Node); err != nil || !slices.IsSorted(p.Items[i].Labels) {
				t.Errorf("%s: labels %v, %v", p.Items[i].ID, p.Items[i].Labels, err)
			}
		}
	}
	if p := project.Session.Part(&state.Entry{}, nil); len(p.Items)+len(p.Edges) > 0 {
		t.Errorf("no object comes to %+v", p)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0).UTC()
	p := project.Memory(project.Remembered{Path: "state/memory/issue-7.json", Observations: []schemas.Observation{
		{ID: "obs-1", Agent: "engineer", IssueNumber: 7, Category: schemas.CategoryDecision, Content: "Files merge.", Summary: "Files",
			SessionID: "login", Timestamp: schemas.Stamp{Time: at}, Anchors: []schemas.Anchor{{Path: "./state/tree.go"}}},
		{ID: "obs-2", Category: schemas.CategoryError, Summary: "It broke"},
		{ID: "obs-3", Summary: "Old", SupersededBy: "obs-1"},
		{ID: "obs-4", Category: "pattern", Content: "No summary."},
	}})
	const want = `observation/obs-1 decision "Files" state/memory/issue-7.json at 1700000000 [agent=engineer category=decision issue=7 kind=observation session=login]
  Files
  | Files merge.
observation/obs-2 failure "It broke" state/memory/issue-7.json at 0 [category=error kind=observation]
  It broke
observation/obs-4 observation "obs-4" state/memory/issue-7.json at 0 [category=pattern kind=observation]
  
  | No summary.
observation/obs-1 references state/tree.go
session/login contains observation/obs-1
`
	if got := show(p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What was merged is found by its originals, unless what they became was removed or one of them is missing.
func TestMemoryMerged(t *testing.T) {
	t.Parallel()
	live := project.Remembered{Path: "m/issue-7.json", Observations: []schemas.Observation{
		{ID: "obs-m", Summary: "Both", Content: "- one\n- two", Compacts: []string{"obs-1", "obs-2"}},
		{ID: "obs-n", Summary: "Others", Content: "- three", Compacts: []string{"obs-3", "obs-lost"}},
	}}
	old := project.Remembered{Path: "m/archive/issue-7-archived.json", Observations: []schemas.Observation{
		{ID: "obs-1", Summary: "One", Content: "one", Archived: true}, {ID: "obs-2", Summary: "Two", Content: "two", Archived: true},
		{ID: "obs-3", Summary: "Three", Content: "three", Archived: true}, {ID: "obs-4", Summary: "Removed", Archived: true},
	}}
	var got []string
	for _, it := range project.Memory(live, old).Items {
		got = append(got, it.ID+"="+it.Body)
	}
	const want = "observation/obs-m= observation/obs-n=- three observation/obs-1=one observation/obs-2=two"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%q, want %q", s, want)
	}
}

// A node of a DAG stands where it is in the file; without the file at its begin.
func TestTasksStand(t *testing.T) {
	t.Parallel()
	dag := entry(t, tree(t), "DAG", nil)
	text := []byte("apiVersion: reconcile.dev/v1alpha1\n" + specs["specs/dags/build.yaml"])
	for _, c := range []struct {
		text []byte
		want string
	}{{text, "build 1-0 make 8-8 test 9-9"}, {nil, "build 1-0 make 1-0 test 1-0"}, {[]byte("{"), "build 1-0 make 1-0 test 1-0"}} {
		var got []string
		for _, it := range project.DAG.Part(dag, c.text).Items {
			got = append(got, fmt.Sprintf("%s %d-%d", it.Name, it.Line, it.End))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q, want %q", s, c.want)
		}
	}
}

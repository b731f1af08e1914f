package ops_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

// byRequest are the operations of which a part is for people only, by what is asked.
var byRequest = []string{"Act", "Apply", "Create", "Delete", "Edit"}

// ofRuns are the operations that a run may do as its agent.
var ofRuns = strings.Fields(`Agents Ask AuditMemory Budget Capture ChooseTool Claim CompactMemory Cycles Deps Describe DescribeNode DiffWorkspace Digest EvalMemory
	Events Explain Facts FindWorkspace FollowEvents FollowLog FollowObjects Get GetMemory Graph History Hook Index Inspect JudgeMemory ListMemory Logs
	MemoryStats MergeFiles Metrics Path Plan PlanChange PlanGitHub Preview Prompt Propose QueryTask ReadLog Ready RebuildMemory Recall Related RemoveFacts RemoveMemory Reply
	ResolveConflict ScanSecrets ExplainSchema Search SearchEval SearchMemory StateFacts Style Test Threads ToolOptions Tools Validate VerifyMemory Version Wait Workspaces
	WriteSchemas`)

// peopleOnly calls the operations of ops.PeopleOnly.
var peopleOnly = map[string]func(context.Context, ops.Env) error{
	"Allow": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Allow(ctx, env, ops.AllowRequest{})
		return err
	},
	"Doctor": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Doctor(ctx, env, ops.DoctorRequest{Fix: true})
		return err
	},
	"DropWorkspace": func(ctx context.Context, env ops.Env) error { _, err := ops.DropWorkspace(ctx, env, "x"); return err },
	"Init": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Init(ctx, env, ops.InitRequest{Agents: true})
		return err
	},
	"InitWorkflows": func(ctx context.Context, env ops.Env) error {
		_, err := ops.InitWorkflows(ctx, env, ops.InitWorkflowsRequest{})
		return err
	},
	"InstallMergeDriver": ops.InstallMergeDriver,
	"AskTools": func(ctx context.Context, env ops.Env) error {
		_, err := ops.AskTools(ctx, env, ops.ToolsRequest{CheckRequest: ops.CheckRequest{Dir: env.Tree.Dir}})
		return err
	},
	"InstallTools": func(ctx context.Context, env ops.Env) error {
		_, err := ops.InstallTools(ctx, env, ops.InstallToolsRequest{CheckRequest: ops.CheckRequest{Dir: env.Tree.Dir, Tools: []string{"none"}}})
		return err
	},
	"OverrideCheck": func(ctx context.Context, env ops.Env) error {
		_, err := ops.OverrideCheck(ctx, env, ops.OverrideRequest{Dir: env.Tree.Dir, NoTests: true, Reason: "x"})
		return err
	},
	"Run": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Run(ctx, env, ops.RunRequest{Object: "dag/none", Params: []string{"a=b"}})
		return err
	},
	"Start": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Start(ctx, env, ops.StartRequest{Workflow: "feature", Issue: 7})
		return err
	},
	"Switch": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Switch(ctx, env, ops.SwitchRequest{Session: "health"})
		return err
	},
	"Task": func(ctx context.Context, env ops.Env) error {
		_, err := ops.Task(ctx, env, ops.TaskRequest{Verb: schemas.VerbPrompt, Name: "a", Text: "b"})
		return err
	},
}

func isForPeople(err error) bool {
	return err != nil && strings.Contains(err.Error(), "only a person may")
}

// TestPeopleOnly goes through all operations: each is of one of the three kinds, and those for people are refused inside a run.
func TestPeopleOnly(t *testing.T) {
	all := slices.Concat(slices.Collect(maps.Keys(ops.PeopleOnly)), byRequest, ofRuns)
	for _, name := range operations(t) {
		if n := len(all); len(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == name })) != n-1 {
			t.Errorf("%s: say in one place whether a run may do it: PeopleOnly, byRequest or ofRuns", name)
		}
	}
	for name := range ops.PeopleOnly {
		call := peopleOnly[name]
		if call == nil {
			t.Errorf("%s is not tried", name)
			continue
		}
		if err := call(t.Context(), inRun(open(t), "engineer")); !isForPeople(err) {
			t.Errorf("%s inside a run: %v", name, err)
		}
		if err := call(t.Context(), open(t)); isForPeople(err) {
			t.Errorf("%s of a person: %v", name, err)
		}
	}
}

// TestPeopleOnlyVerbs: a run may stop work, and not let go on what waits for a person.
func TestPeopleOnlyVerbs(t *testing.T) {
	var refused []string
	for _, v := range ops.Verbs {
		q := ops.ActRequest{Verb: v.Name, Target: "dag/checks", NoRun: true}
		if _, err := ops.Act(t.Context(), inRun(open(t), "engineer"), q); isForPeople(err) {
			refused = append(refused, v.Name)
		}
	}
	if got := strings.Join(refused, " "); got != "retry resume skip approve deny" {
		t.Errorf("refused inside a run: %s", got)
	}
}

// TestPeopleOnlySpecs writes specs that only people may write, and others, inside a run and outside of one.
func TestPeopleOnlySpecs(t *testing.T) {
	const head = "apiVersion: reconcile.dev/v1alpha1\nkind: "
	action := func(fields string) string {
		return head + "Action\nmetadata: {name: act}\nspec: {target: dag/checks, " + fields + "}\n"
	}
	dag := func(fields string) string {
		return head + "DAG\nmetadata: {name: d}\nspec: {session: health, nodes: [{name: a, run: [x], " + fields + "}]}\n"
	}
	final := func(fields string) string {
		return strings.Replace(dag(""), "nodes:", "finally: [{name: z, agent: engineer, prompt: p, "+fields+"}], nodes:", 1)
	}
	session := func(fields string) string {
		return head + "Session\nmetadata: {name: s}\nspec: {title: T, " + fields + "}\n"
	}
	for _, c := range []struct{ name, before, text, inside, outside string }{
		{"an agent", "", head + "Agent\nmetadata: {name: mine}\nspec: {runner: {command: {argv: [x]}}}\n", "only a person may", ""},
		{"an approval", "", action("verb: approve, node: a"), "only a person may approve", ""},
		{"a retry", "", action("verb: retry"), "only a person may retry", ""},
		{"a pause", "", action("verb: pause"), "", ""},
		{"another's pause", "", action("verb: pause, by: alice"), "alice cannot be given here", ""},
		{"a proof", "", action("verb: pause, by: alice, proof: account"), "alice cannot be given here", "proof: account cannot be given"},
		{"a claim", "", action("verb: pause, by: alice, proof: claimed"), "alice cannot be given here", ""},
		{"another hold", action("verb: hold"), action("verb: pause"), "only a person may change action/act", "is a record and cannot be changed"},
		{"a reply of another", "", head + "Reply\nmetadata: {name: r}\nspec: {clarification: CLR-1-001, type: answer, from: architect, body: b}\n",
			"architect cannot be given here", ""},
		{"a phase", head + "Session\nmetadata: {name: s}\nspec: {phase: Paused}\n", head + "Session\nmetadata: {name: s}\nspec: {phase: Active}\n",
			"only a person may change the phase of session/s", ""},
		{"a title", head + "Session\nmetadata: {name: s}\nspec: {phase: Paused}\n", head + "Session\nmetadata: {name: s}\nspec: {phase: Paused, title: T}\n",
			"", ""},
		{"a budget", head + "Session\nmetadata: {name: s}\nspec: {budget: {tokens: 5}}\n", head + "Session\nmetadata: {name: s}\nspec: {budget: {tokens: 6}}\n",
			"only a person may change the budget of session/s", ""},
		{"checks", dag("land: {checks: [[make, test]]}"), dag("land: {checks: [['true']]}"), "only a person may change the checks of node a", ""},
		{"no checks", dag("land: {checks: [[make, test]]}"), dag(""), "only a person may change the checks of node a", ""},
		{"checks instead of the session's", dag(""), dag("land: {checks: [['true']]}"), "only a person may change the checks of node a", ""},
		{"checks of a session", head + "Session\nmetadata: {name: s}\nspec: {land: {checks: [[make, test]]}}\n", head + "Session\nmetadata: {name: s}\nspec: {}\n",
			"only a person may change the checks of session/s", ""},
		{"checks of a new node", dag(""), strings.Replace(dag(""), "]}", ", {name: b, run: [x], land: {checks: [['true']]}}]}", 1), "only a person may change the checks of node b", ""},
		{"a pipeline of a new node", dag(""), strings.Replace(dag(""), "]}", ", {name: b, agent: engineer, prompt: p, pipeline: {failOn: critical}}]}", 1), "only a person may change the checks of node b", ""},
		{"a new node", dag(""), strings.Replace(dag(""), "}]}", "}, {name: b, run: [x]}]}", 1), "", ""},
		{"an approval of a final node", final("approve: {count: 1}"), final(""), "only a person may change the approval of node z", ""},
		{"a budget of a final node", final("budget: {tokens: 5}"), final("budget: {tokens: 6}"), "only a person may change the budget of node z", ""},
		{"nodes that were made of one", dag("matrix: {values: {v: [p, q]}}, land: {checks: [[x]]}"), dag("matrix: {values: {v: [p, r]}}, land: {checks: [[x]]}"), "", ""},
		{"the branch that is verified", head + "Session\nmetadata: {name: s}\nspec: {quality: {}}\n", head + "Session\nmetadata: {name: s}\nspec: {quality: {}, branch: calm}\n",
			"only a person may change the checks of session/s", ""},
		{"the environment of what verifies", head + "Session\nmetadata: {name: s}\nspec: {quality: {}}\n", head + "Session\nmetadata: {name: s}\nspec: {quality: {}, env: {A: b}}\n",
			"only a person may change the checks of session/s", ""},
		{"no quality", head + "Session\nmetadata: {name: s}\nspec: {quality: {}}\n", head + "Session\nmetadata: {name: s}\nspec: {}\n",
			"only a person may change the checks of session/s", ""},
		{"what mends a session", "", strings.Replace(dag(""), "nodes:", "fixes: health, nodes:", 1), "only a person may decide what mends a session by dag/d", ""},
		{"an approval of a node", dag("approve: {count: 2}"), dag("approve: {count: 1}"), "only a person may change the approval of node a", ""},
		{"a gate", dag(""), dag("approve: {count: 1}"), "", ""},
		{"another session", dag(""), strings.Replace(dag(""), "session: health", "session: other", 1), "only a person may change the session of dag/d", ""},
		{"a prompt", dag("land: {checks: [[make, test]]}"), dag("env: {A: b}, land: {checks: [[make, test]]}"), "", ""},
		{"a notification", dag(""), strings.Replace(dag(""), "nodes:", "onFailure: {command: [curl]}, nodes:", 1), "only a person may change the notifications of dag/d", ""},
		{"a new notification", "", strings.Replace(dag(""), "nodes:", "onSuccess: {webhook: {url: 'https://example.com'}}, nodes:", 1), "only a person may change the notifications of dag/d", ""},
		{"a preference", "", head + "Preference\nmetadata: {name: p}\nspec: {domain: tools, key: go/linter, value: staticcheck}\n", "only a person may write preference/p", ""},
		{"an inferred preference", "", head + "Preference\nmetadata: {name: p}\nspec: {domain: tools, key: go/linter, value: staticcheck, source: inferred}\n", "", ""},
		{"a person's preference as inferred", head + "Preference\nmetadata: {name: p}\nspec: {domain: tools, key: go/linter, value: x}\n",
			head + "Preference\nmetadata: {name: p}\nspec: {domain: tools, key: go/linter, value: y, source: inferred}\n", "only a person may write preference/p", ""},
		{"a new DAG of a run that proves nothing", "", dag(""), "only a person may write dag/d for another session than that of this task", ""},
		{"a higher priority of a session", session(""), session("priority: high"), "only a person may raise the priority of session/s", ""},
		{"a lower priority of a session", session(""), session("priority: low"), "", ""},
		{"a larger weight", session("weight: 2"), session("weight: 3"), "only a person may raise the weight of session/s", ""},
		{"a smaller weight", session("weight: 2"), session(""), "", ""},
		{"more tasks at once", session("maxConcurrentTasks: 2"), session(""), "only a person may raise the maxConcurrentTasks of session/s", ""},
		{"more engineers at once", session(""), session("maxEngineers: 21"), "only a person may raise the maxEngineers of session/s", ""},
		{"fewer engineers at once", session(""), session("maxEngineers: 2"), "", ""},
		{"another owner", session("owner: ann"), session("owner: bob"), "only a person may change the owner of session/s", ""},
		{"a priority beyond the session's", dag(""), dag("priority: critical"), "only a person may change the priority, beyond that of the session, of node a", ""},
		{"a priority below the session's", dag(""), dag("priority: low"), "", ""},
		{"a priority that it has", dag("priority: high"), dag("priority: high, timeout: 1m"), "", ""},
		{"no limits", dag("limits: {memory: 1Gi}"), dag(""), "only a person may change the limits of node a", ""},
		{"limits", dag(""), dag("limits: {memory: 1Gi}"), "", ""},
		{"more nodes at once", strings.Replace(dag(""), "nodes:", "policy: {maxConcurrency: 2}, nodes:", 1), dag(""), "only a person may raise the maxConcurrency of dag/d", ""},
		{"a new session", "", head + "Session\nmetadata: {name: s}\nspec: {}\n", "only a person may write session/s", ""},
		{"a workflow without its gate", head + "Workflow\nmetadata: {name: w}\nspec: {steps: [{id: a, agent: engineer, approve: {}}]}\n",
			head + "Workflow\nmetadata: {name: w}\nspec: {steps: [{id: a, agent: engineer}]}\n", "only a person may change the approval of node a", ""},
	} {
		for i, want := range []string{c.inside, c.outside} {
			env := open(t)
			if c.before != "" {
				if _, err := apply(t, env, c.before); err != nil {
					t.Fatal(err)
				}
			}
			if i == 0 {
				env = inRun(env, "engineer")
			}
			_, err := apply(t, env, c.text)
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
				t.Errorf("%s: %v, want %q", c.name, err, want)
			}
		}
	}
}

// TestInvalidSpecsArePeoples: what an invalid spec was cannot be told, and so no run replaces or deletes it.
func TestInvalidSpecsArePeoples(t *testing.T) {
	env := open(t)
	const valid = "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\nspec: {session: health, nodes: [{name: a, run: [x]}]}\n"
	changes, err := apply(t, env, valid)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(env.Tree.Dir, filepath.FromSlash(changes[0].Path))
	if err := os.WriteFile(file, []byte(strings.Replace(valid, "session: health", "sesion: health", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = apply(t, inRun(env, "engineer"), valid)
	_, err2 := ops.Delete(t.Context(), inRun(env, "engineer"), []string{"dag/d"})
	for _, err := range []error{err, err2} {
		if !strings.Contains(fmt.Sprint(err), "only a person may replace the invalid dag/d") {
			t.Error(err)
		}
	}
	if _, err := apply(t, env, valid); err != nil {
		t.Error(err)
	}
}

func apply(t *testing.T, env ops.Env, text string) ([]ops.SpecChange, error) {
	return ops.Apply(t.Context(), env, ops.ApplyRequest{Texts: []ops.SpecText{{Name: "a.yaml", Text: []byte(text)}}})
}

// operations are the names of all operations.
func operations(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || len(fn.Type.Params.List) < 2 {
				continue
			}
			if env, ok := fn.Type.Params.List[1].Type.(*ast.Ident); ok && env.Name == "Env" {
				names = append(names, fn.Name.Name)
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("no operations found")
	}
	return names
}

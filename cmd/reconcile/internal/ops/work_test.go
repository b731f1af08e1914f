package ops_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
)

// small returns the environment of a small tree: two agents that people are, and a DAG.
func small(t *testing.T) ops.Env {
	t.Helper()
	env := open(t)
	env.Tree.Dir = t.TempDir()
	env.Caller.Dir = env.Tree.Dir
	const head = "apiVersion: reconcile.dev/v1alpha1\nkind: "
	for name, text := range map[string]string{
		"sessions/work": "Session\nmetadata: {name: work}\nspec: {owner: ada, issue: 42}\n",
		"sessions/next": "Session\nmetadata: {name: next}\nspec:\n  owner: ada\n  phase: Paused\n",
		"agents/ada":    "Agent\nmetadata: {name: ada}\nspec: {runner: {human: {}}, canClarify: [ben]}\n",
		"agents/ben":    "Agent\nmetadata: {name: ben}\nspec: {runner: {human: {}}}\n",
		"dags/job": "DAG\nmetadata: {name: job}\nspec: {session: work, nodes: [{name: do, run: [echo, hello]}, " +
			"{name: look, needs: [do], agent: ada, prompt: Look at it.}]}\n",
	} {
		write(t, env, "specs/"+name+".yaml", head+text)
	}
	return env
}

// inRun makes the caller a part of a run of the tree.
func inRun(env ops.Env, agent string) ops.Env {
	env.Caller.Getenv = func(name string) string {
		return map[string]string{"RECONCILE_ROOT": env.Tree.Dir, "RECONCILE_KEY": "dags/job/do-0123456789abcdef-1", "RECONCILE_AGENT": agent}[name]
	}
	return env
}

func mustRun(t *testing.T, env ops.Env) ops.RunResult {
	t.Helper()
	r, err := ops.Run(t.Context(), env, ops.RunRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	env := small(t)
	_, err := ops.Run(t.Context(), env, ops.RunRequest{Object: "dag/jbo"})
	badRequest(t, err, `did you mean "job"?`)
	_, err = ops.Run(t.Context(), env, ops.RunRequest{Object: "dag/job", Watch: true})
	badRequest(t, err, "watch performs everything")
	_, err = ops.Run(t.Context(), env, ops.RunRequest{Push: true})
	badRequest(t, err, "nothing was run")
	one, err := ops.Run(t.Context(), env, ops.RunRequest{Object: "dag/job", Node: "do"})
	if err != nil || one.Ran != 1 || one.Verdict != ops.OK {
		t.Errorf("%+v, %v", one, err)
	}
	if r := mustRun(t, env); !r.Unchanged || r.HasTree() || r.Ran != 0 || r.Total != 5 || len(r.Waits) == 0 {
		t.Errorf("%+v", r)
	}
	write(t, env, "specs/dags/bad.yaml", "kind: DAG\n")
	env.Explain = true
	r := mustRun(t, env)
	if r.Verdict != ops.Invalid || len(r.Problems()) == 0 || r.Standing.Waiting != 1 || len(r.NotReady) != 2 {
		t.Errorf("with a broken file: %+v", r)
	}
	again := mustRun(t, env)
	if !again.Unchanged || again.HasTree() {
		t.Errorf("the tree was read again: %+v", again)
	}
	if len(r.Unready) != 2 || !reflect.DeepEqual(again.Unready, r.Unready) || !reflect.DeepEqual(again.NotReady, r.NotReady) ||
		!reflect.DeepEqual(again.Problems(), r.Problems()) || !reflect.DeepEqual(again.Objects, r.Objects) || again.Standing != r.Standing {
		t.Errorf("%+v, want %+v", again, r)
	}
	inside := inRun(env, "ada")
	if inside.Caller.Run() == nil {
		t.Fatalf("no run is seen; its marks are %q", runner.MarkVariables)
	}
	if _, err := ops.Run(t.Context(), inside, ops.RunRequest{}); err == nil || !strings.Contains(err.Error(), "a run inside a run") {
		t.Errorf("in a run: %v", err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Run(ctx, env, ops.RunRequest{Object: "dag/job"})
		return err
	})
}

func TestReadyAndClaim(t *testing.T) {
	env := small(t)
	mustRun(t, env)
	find := func(q ops.ReadyRequest) []work.Item {
		t.Helper()
		items, err := ops.Ready(t.Context(), env, q)
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	other := 7
	if got := find(ops.ReadyRequest{Agent: "ada"}); len(got) != 1 || got[0].Name != "dag/job/look" {
		t.Errorf("ready: %+v", got)
	}
	if got := find(ops.ReadyRequest{Issue: &other}); got == nil || len(got) != 0 {
		t.Errorf("of another issue: %+v", got)
	}
	_, err := ops.Claim(t.Context(), env, ops.ReadyRequest{})
	badRequest(t, err, "claim needs --agent")
	first, err := ops.Claim(t.Context(), env, ops.ReadyRequest{Agent: "ada"})
	if err != nil || first.Item == nil || first.Item.Claim.By != "ada" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := ops.Claim(t.Context(), env, ops.ReadyRequest{Agent: "ada"}); err != nil || again.Item != nil {
		t.Errorf("twice: %+v, %v", again, err)
	}
	if got := find(ops.ReadyRequest{}); len(got) != 0 {
		t.Errorf("taken, and still offered: %+v", got)
	}
	if got := find(ops.ReadyRequest{Taken: true}); len(got) != 1 {
		t.Errorf("taken items: %+v", got)
	}
	if _, err := ops.Claim(t.Context(), inRun(env, "ben"), ops.ReadyRequest{Agent: "ada"}); !errors.Is(err, &clarify.Error{Kind: clarify.ScopeViolation}) {
		t.Errorf("in a run of ben: %v", err)
	}
	issue := 42
	done, err := ops.Hook(t.Context(), env, ops.HookRequest{Agent: "ada", Issue: &issue, Finish: true})
	if err != nil || done.Outcome != schemas.OutcomeDone || done.Record == "" {
		t.Errorf("%+v, %v", done, err)
	}
	if got := find(ops.ReadyRequest{}); len(got) != 1 {
		t.Errorf("given back: %+v", got)
	}
	_, err = ops.Hook(t.Context(), env, ops.HookRequest{Agent: "ada"})
	badRequest(t, err, "reconcile hook start needs --agent and --issue")
}

func TestAct(t *testing.T) {
	env := small(t)
	mustRun(t, env)
	r, err := ops.Act(t.Context(), env, ops.ActRequest{Verb: "approve", Target: "dag/job", Node: "look", By: "ada"})
	if err != nil || r.Path == "" || r.Run == nil || r.Moot != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if d, err := ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "dag/job"}); err != nil || readiness.PhaseWord(d.Entry) != "Succeeded" {
		t.Errorf("%s, %v", d.Why, err)
	}
	_, err = ops.Act(t.Context(), env, ops.ActRequest{Verb: "approve", Target: "dag/job", Node: "look"})
	if err == nil || !strings.Contains(err.Error(), "nothing to approve") {
		t.Errorf("twice: %v", err)
	}
	for want, q := range map[string]ops.ActRequest{
		"only a person may approve": {Verb: "approve", Target: "dag/job", Node: "look"},
		"cannot be told to pause":   {Verb: "pause", Target: "agent/ada"},
		"needs a node":              {Verb: "deny", Target: "dag/job"},
		"about a whole DAG":         {Verb: "retry", Target: "dag/job", Node: "do", All: true},
		"no verb":                   {Verb: "explode", Target: "dag/job"},
	} {
		caller := env
		if q.Verb == "approve" {
			caller = inRun(env, "ada")
		}
		_, err := ops.Act(t.Context(), caller, q)
		badRequest(t, err, want)
	}
	if r, err = ops.Act(t.Context(), env, ops.ActRequest{Verb: "pause", Target: "session/work", NoRun: true}); err != nil || r.Run != nil {
		t.Errorf("only written: %+v, %v", r, err)
	}
}

func TestTask(t *testing.T) {
	env := small(t)
	write(t, env, "specs/agents/cy.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: cy}\n"+
		"spec: {runner: {command: {argv: [cat]}}}\n")
	write(t, env, "specs/dags/more.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: more}\n"+
		"spec: {session: work, nodes: [{name: write, agent: cy, prompt: Write it.}]}\n")
	r, err := ops.Task(t.Context(), env, ops.TaskRequest{Name: "cy", Verb: schemas.VerbPrompt, Text: "Mind the gap.", By: "ada", NoRun: true})
	if err != nil || r.Node != "dag/more:write" || r.Run != nil || r.Receipt != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	mustRun(t, env)
	d, err := ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "action/" + r.Action})
	if err != nil {
		t.Fatal(err)
	}
	st, ok := d.Entry.Status().(*schemas.ActionStatus)
	if !ok || st.Delivery == nil {
		t.Errorf("the action has %+v, want a receipt", d.Entry.Status())
	}
	if v, err := ops.QueryTask(t.Context(), inRun(env, "cy"), "wrote"); err != nil || v.Node != "dag/more:write" || v.Agent != "cy" || v.State != schemas.NodeSucceeded {
		t.Errorf("%+v, %v", v, err)
	}
	for want, q := range map[string]ops.TaskRequest{
		"only a person may prompt": {Name: "write", Verb: schemas.VerbPrompt, Text: "x"},
		"cannot be told to shout":  {Name: "write", Verb: "shout", Text: "x"},
		"nothing to tell":          {Name: "write", Verb: schemas.VerbPrompt},
	} {
		caller := env
		if strings.HasPrefix(want, "only") {
			caller = inRun(env, "ada")
		}
		_, err := ops.Task(t.Context(), caller, q)
		badRequest(t, err, want)
	}
}

func TestSwitch(t *testing.T) {
	env := small(t)
	r, err := ops.Switch(t.Context(), env, ops.SwitchRequest{Session: "next", NoRun: true})
	if err != nil || len(r.Edits) != 2 || r.Edits[0].Phase != schemas.SessionPaused || r.Edits[1].Ref.String() != "session/next" {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = ops.Switch(t.Context(), env, ops.SwitchRequest{Session: "session/next", NoRun: true}); err != nil || len(r.Edits) > 0 {
		t.Errorf("twice: %+v, %v", r, err)
	}
	_, err = ops.Switch(t.Context(), env, ops.SwitchRequest{Session: "dag/job"})
	badRequest(t, err, "is no session")
}

func TestClarifications(t *testing.T) {
	env := small(t)
	ask := ops.AskRequest{From: "ada", To: "ben", Topic: "Layers", Question: "One or two?"}
	first, err := ops.Ask(t.Context(), env, ask)
	if err != nil || first.Thread.Status != schemas.ClarificationPending || !first.Open {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := ops.Ask(t.Context(), env, ask)
	if err != nil || again.Thread.ID != first.Thread.ID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if _, err := ops.Ask(t.Context(), env, ops.AskRequest{From: "ben", To: "ada", Topic: "T", Question: "Q"}); !errors.Is(err, &clarify.Error{Kind: clarify.ScopeViolation}) {
		t.Errorf("ben may not ask: %v", err)
	}
	said, err := ops.Reply(t.Context(), env, ops.ReplyRequest{Verb: "answer", ID: first.Thread.ID, From: "ben", Text: "Two."})
	if err != nil || said.Thread.Status != schemas.ClarificationAnswered || said.Before.Status != schemas.ClarificationPending {
		t.Errorf("%+v, %v", said, err)
	}
	if said, err := ops.Reply(t.Context(), env, ops.ReplyRequest{Verb: "abandon", ID: first.Thread.ID, From: "ada"}); said != nil || err == nil {
		t.Errorf("an answered question was abandoned: %+v, %v", said, err)
	}
	_, err = ops.Reply(t.Context(), env, ops.ReplyRequest{Verb: "shout", ID: first.Thread.ID})
	badRequest(t, err, "shout")
	issue := 0
	for want, q := range map[int]ops.ThreadsRequest{0: {Troubled: true}, 1: {Issue: &issue, NoRun: true}} {
		if list, err := ops.Threads(t.Context(), env, q); err != nil || list == nil || len(list) != want {
			t.Errorf("%+v: %+v, %v", q, list, err)
		}
	}
	if list, err := ops.Threads(t.Context(), env, ops.ThreadsRequest{ID: first.Thread.ID}); err != nil || len(list[0].Thread) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A question is kept where the tree cannot be locked.
func TestAskWhileBusy(t *testing.T) {
	env := small(t)
	env.Engine = func(context.Context, engine.Options, engine.Request) (engine.Result, error) {
		return engine.Result{}, &ops.Error{Code: ops.Busy, Err: errors.New("busy")}
	}
	_, err := ops.Ask(t.Context(), env, ops.AskRequest{From: "ada", To: "ben", Topic: "T", Question: "Q", Request: "kept"})
	if ops.CodeOf(err) != ops.Busy {
		t.Error(err)
	}
	if _, err := ops.Get(t.Context(), env, ops.GetRequest{What: []string{"request/kept"}}); err != nil {
		t.Error(err)
	}
}

func TestLogs(t *testing.T) {
	env := small(t)
	mustRun(t, env)
	r, err := ops.Logs(t.Context(), env, ops.LogsRequest{Object: "dag/job", Node: "do"})
	if err != nil || len(r.Attempts) != 1 || r.Attempts[0].State != schemas.NodeSucceeded {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, gone := range []bool{false, true} {
		at := r.Attempts[0]
		if gone {
			at.Log = "nowhere"
		}
		text, whole, err := ops.ReadLog(t.Context(), env, at, -1)
		if err != nil || whole == gone {
			t.Fatal(whole, err)
		}
		data, err := io.ReadAll(text)
		if err = errors.Join(err, text.Close()); err != nil || string(data) != "hello\n" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if r, err = ops.Logs(t.Context(), env, ops.LogsRequest{Failed: true}); err != nil || r.Attempts == nil || len(r.Attempts) > 0 {
		t.Errorf("failed: %+v, %v", r, err)
	}
	_, err = ops.Logs(t.Context(), env, ops.LogsRequest{})
	badRequest(t, err, "logs needs a DAG")
	_, err = ops.Logs(t.Context(), env, ops.LogsRequest{Object: "agent/ada"})
	badRequest(t, err, "has no logs")
	var seen strings.Builder
	for part, err := range ops.FollowLog(t.Context(), env, ops.LogsRequest{Object: "dag/job", Node: "do"}, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if part.Text != nil {
			io.Copy(&seen, part.Text)
		}
	}
	if seen.String() != "hello\n" {
		t.Errorf("followed: %q", &seen)
	}
	for range ops.FollowLog(t.Context(), env, ops.LogsRequest{Object: "dag/job", Node: "do"}, -1) {
		break
	}
	for _, err := range ops.FollowLog(t.Context(), env, ops.LogsRequest{Object: "dag/job"}, -1) {
		badRequest(t, err, "follow needs a node")
	}
}

func TestWait(t *testing.T) {
	env := small(t)
	mustRun(t, env)
	met, err := ops.Wait(t.Context(), env, ops.WaitRequest{Objects: []string{"agent/ada"}, For: "condition=Ready"})
	if err != nil || len(met) != 1 || met[0].String() != "agent/ada: Ready True" {
		t.Errorf("%v, %v", met, err)
	}
	_, err = ops.Wait(t.Context(), env, ops.WaitRequest{Objects: []string{"dag/job"}, For: "phase=Succeeded"})
	if ops.CodeOf(err) != ops.Failure || !strings.Contains(err.Error(), "waited 0s for phase Succeeded") {
		t.Error(err)
	}
	_, err = ops.Wait(t.Context(), env, ops.WaitRequest{Objects: []string{"dag/job"}, For: "condition=Redy"})
	badRequest(t, err, `did you mean "Ready"?`)
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Wait(ctx, env, ops.WaitRequest{Objects: []string{"dag/job"}, For: "phase=Succeeded"})
		return err
	})
}

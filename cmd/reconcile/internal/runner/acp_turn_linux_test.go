package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// agentOf is the turn of a test agent with arguments as in package acptest.
func agentOf(args ...string) settle.Effect {
	e := actor(append([]string{}, args...)...)
	c := e.Command()
	c.Argv = append([]string{c.Argv[0], "play", "agent"}, args...)
	c.Output, c.StdinFormat, c.Stdin = "text", "prompt", "do it"
	e.Task, e.Agent = &settle.AgentTurn{Command: *c}, "engineer"
	return e
}

// endings are turns of an agent, and what is on record of them.
var endings = []struct{ name, steps, want string }{
	{"success", "text:Hello|usage:10:100", `Succeeded "Hello"`},
	{"the last message is the result", "text:I will look.|tool:t1:pending|tool:t1:completed|text:Found.", `Succeeded "Found."`},
	{"late updates", "text:do|end:end_turn:5|late:ne", `Succeeded "done"`},
	{"1,100 updates at once", "burst:1100|text:done", `Succeeded "done"`},
	{"a line of 12 MB", "line:12582912|text:done", `Succeeded "done"`},
	{"unknown kinds", "text:do|unknown:notice|text:ne", `Succeeded "done"`},
	{"a question", "text:CLARIFICATION NEEDED from architect about Pools: How many?", `Asked asks architect about Pools`},
	{"end_turn without usage", "text:Error: Failed to get response: 429|end:end_turn:",
		"Failed limit rate limit: Error: Failed to get response: 429 (the turn ended with end_turn, but the model's use of tokens is not known)"},
	{"end_turn without tokens", "text:nothing|end:end_turn:0", "Failed unknown the turn ended with end_turn, but the model produced nothing"},
	{"sessionFailure", "text:x|fail:limit|end:end_turn:5", "Failed limit rate limit: it failed: limit"},
	{"a retry that worked", "warn:Retrying|text:done", `Succeeded "done"`},
	{"-32603 with data", `error:-32603:Internal error:{"errorKind":"server_error","status":503}`, "Failed service service failure: Internal error"},
	{"-32000", "-refuse=session/new", "Failed access access denied: Authentication required"},
	{"exit in mid-stream", "text:half|exit:3", "Failed connection connection lost: the agent's process or connection ended during the turn (exit code 3)"},
	{"exit at once", "-die=initialize", "Failed connection connection lost: the agent's process or connection ended during the turn (exit code 7)"},
	{"refusal", "text:no|end:refusal:5", "Failed request request refused: the model refused the request"},
	{"a mode that is not offered", "-modes=default", "Failed request request refused: mode edit: the agent does not offer this mode"},
	{"nothing said", "end:end_turn:5", "Failed unknown the output is empty"},
}

func TestTurnsEnd(t *testing.T) {
	for _, c := range endings {
		t.Run(c.name, func(t *testing.T) {
			e := agentOf(strings.Split(c.steps, "|")...)
			if strings.HasPrefix(c.name, "a mode") {
				e.Turn().Mode = "edit"
			}
			run := newRig(t, Options{}).do(e)
			if got := outcomeOf(run); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if run.Turn == nil || run.Turn.Runner != schemas.RunnerACP || run.ExitCode != nil {
				t.Errorf("the record has %+v", run)
			}
		})
	}
}

// outcomeOf describes the end of a run.
func outcomeOf(r *schemas.Run) string {
	switch {
	case r.Outcome == schemas.OutcomeSucceeded:
		return r.Outcome + " " + string(r.Result)
	case r.Turn == nil || r.Turn.Failure == nil:
		return r.Outcome + " " + strings.Repeat(" ", btoi(r.Outcome == schemas.OutcomeFailed)) + r.Message
	}
	return fmt.Sprintf("%s %s %s", r.Outcome, r.Turn.Failure.Class, r.Message)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestResumedCost checks that what a session cost before is not charged again: agents report a sum over the session.
func TestResumedCost(t *testing.T) {
	g := newRig(t, Options{})
	first := g.do(agentOf("usage:10:100:0.5", "text:one"))
	e := agentOf("usage:20:100:0.75", "text:two")
	e.Turn().Resume, e.Turn().Resumes = first.Turn.SessionID, first.Turn
	second := g.do(e)
	if c := first.Turn.CostUSD; c == nil || *c != 0.5 {
		t.Errorf("the first turn cost %v, want 0.5", c)
	}
	if c, s := second.Turn.CostUSD, second.Turn.SessionCostUSD; c == nil || *c != 0.25 || s == nil || *s != 0.75 || second.Turn.SessionID != first.Turn.SessionID {
		t.Errorf("the second turn: %+v, want a cost of 0.25 of 0.75 in the same session", second.Turn)
	}
}

func TestTurnRecord(t *testing.T) {
	g := newRig(t, Options{Environ: append(os.Environ(), "API_TOKEN=canary-4711")})
	e := agentOf("usage:96000:100000", "thought:hm", "text:The key is canary-", "text:4711.", "tool:t1:completed", "ask:t1:cat canary-4711", "stderr:on stderr canary-4711")
	e.Turn().ProfileName = "claude"
	run := g.do(e)
	if run.Outcome != schemas.OutcomeSucceeded {
		t.Fatalf("%s: %s", run.Outcome, run.Message)
	}
	turn := run.Turn
	want := schemas.Usage{InputTokens: 20, OutputTokens: 5, CachedInputTokens: 8, ContextUsed: 96000, ContextWindow: 100000}
	if *turn.Usage != want || turn.UsageFrom != "agent" || turn.SessionID != "s1" || turn.StopReason != "end_turn" ||
		turn.Profile != "claude" || turn.ToolCalls != 1 || turn.Transcript != run.Log {
		t.Errorf("%+v %+v", turn, turn.Usage)
	}
	if p, _ := json.Marshal(turn.Permissions); string(p) != `[{"title":"Run cat ***","argv":["cat","***"],"dir":"/x","decision":"reject_once","by":"default"}]` {
		t.Errorf("permissions %s", p)
	}
	log, err := os.ReadFile(filepath.Join(g.dir, run.Log))
	record, _ := json.Marshal(run)
	if err != nil || strings.Contains(string(log)+string(record), "4711") || !strings.Contains(string(log), "The key is ***.\n[tool] tool t1 completed\n") ||
		!strings.Contains(string(log), "on stderr ***") {
		t.Errorf("%v, log:\n%s\nrecord: %s", err, log, record)
	}
}

type permits func(acp.PermissionRequest) Permit

func (p permits) Permit(_ context.Context, q PermissionRequest) Permit { return p(q.Request) }

func TestPermit(t *testing.T) {
	g := newRig(t, Options{Permissions: permits(func(r acp.PermissionRequest) Permit {
		if r.Command[0] == "ls" {
			return Permit{Kinds: []string{acp.AllowOnce}, By: "a rule"}
		}
		return Permit{By: "nobody"}
	})})
	run := g.do(agentOf("ask:t1:ls", "ask:t2:rm"))
	if p, _ := json.Marshal(run.Turn.Permissions); string(p) != `[{"title":"Run ls","argv":["ls"],"dir":"/x","decision":"allow_once","by":"a rule"},`+
		`{"title":"Run rm","argv":["rm"],"dir":"/x","decision":"cancelled","by":"nobody"}]` {
		t.Errorf("permissions %s", p)
	}
	g = newRig(t, Options{})
	if run = g.do(agentOf("ask:t1:rm", "end:cancelled:5")); !strings.HasSuffix(run.Message, `the turn ended with cancelled; it was refused "Run rm"`) {
		t.Errorf("ended %s", run.Message)
	}
}

// TestPeopleAreWaitedFor: the limit of a turn's time does not count the time in which a person is asked.
func TestPeopleAreWaitedFor(t *testing.T) {
	for worked, ends := range map[time.Duration]bool{time.Minute - time.Second: false, time.Minute + time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			a := &attempt{task: &settle.Command{}, job: newJob(settle.Effect{}, time.Now())}
			question := &asked{since: time.Now()}
			a.talk = &talk{a: a, done: make(chan struct{}), permissions: []*asked{question}}
			go func() {
				time.Sleep(time.Hour)
				a.talk.mu.Lock()
				question.since, a.talk.waited = time.Time{}, time.Hour
				a.talk.mu.Unlock()
				time.Sleep(worked)
				close(a.talk.done)
			}()
			if c := a.waitOrStop(nil, &limit{cause: cause{message: "late"}, after: time.Minute, work: true}); (c != nil) != ends {
				t.Errorf("after %s of work: %+v", worked, c)
			}
			<-a.talk.done
		})
	}
}

// Every end leaves no process, also where the agent ignores everything.
func TestAgentsAreEnded(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string
		end   func(g *rig, key string)
		want  string // "": released
	}{
		{"cancelled", []string{"hang"}, func(g *rig, key string) { g.Cancel(key, "no longer wanted") }, "Cancelled no longer wanted"},
		{"out of time", []string{"hang"}, nil, "TimedOut unknown timed out after 3s"},
		{"silent", []string{"hang"}, nil, "Failed connection connection lost: silent for 3s; the turn was ended"},
		{"reconcile ends", []string{"hang"}, func(g *rig, _ string) { go g.Close(context.Background()) }, ""},
		{"reconcile ends, deaf", []string{"fork", "deaf"}, func(g *rig, _ string) { go g.Close(context.Background()) }, ""},
		{"stays", []string{"fork", "end:end_turn:5", "late:done"}, nil, `Succeeded "begundone"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, Options{Runs: graceOf(300 * time.Millisecond)})
			pids := g.fifo("pids")
			steps := append([]string{"pid:pids", "text:begun"}, c.steps...)
			if c.name == "stays" {
				steps = append([]string{"-stay"}, steps...)
			}
			e := agentOf(steps...)
			switch c.name {
			case "out of time":
				e.Turn().Timeout = 3 * time.Second
			case "silent":
				e.Turn().Silence = 3 * time.Second
			}
			g.Submit(e)
			pid := pids.number()
			if c.end != nil {
				c.end(g, e.Key)
			}
			rep := g.await(e.Key)
			got := ""
			if rep.Run != nil {
				got = outcomeOf(rep.Run)
			}
			if got != c.want {
				t.Errorf("got  %s (%v %s)\nwant %s", got, rep.Kind, rep.Why, c.want)
			}
			g.end()
			assertGone(t, []int{pid})
		})
	}
}

// A run that was interrupted continues its session; another program, and a task of another key, do not.
func TestInterruptedSessionContinues(t *testing.T) {
	for _, offer := range []string{"-resume", "-load", "-forget", "-calls=calls"} { // the last offers nothing
		t.Run(offer, func(t *testing.T) {
			dir := t.TempDir()
			g := newRig(t, Options{Root: dir})
			gate := g.fifo("gate")
			e := agentOf(offer, "-calls=calls", "text:begun", "gate:gate", "text:, done")
			g.Submit(e)
			g.until(func(r settle.Report) bool { return r.Kind == settle.Progressed && r.Turn.SessionID == "s1" })
			g.end()
			g = newRig(t, Options{Root: dir})
			g.Submit(e)
			g.awaitStart(e.Key)
			gate.release()
			run := g.record(e.Key)
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			second := strings.Fields(string(calls[strings.LastIndex(string(calls), "initialize"):]))
			want := map[string]string{"-resume": "session/resume", "-load": "session/load", "-forget": "session/resume session/new"}[offer]
			want = "initialize " + cmp.Or(want, "session/new") + " session/prompt"
			if got := strings.Join(second, " "); got != want || string(run.Result) != `"begun, done"` {
				t.Errorf("%s %s, want %s", run.Result, got, want)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, ".reconcile/work/*"+sessionSuffix)); len(files) != 1 {
				t.Errorf("files %v", files)
			}
			g.end()
			if files, _ := filepath.Glob(filepath.Join(dir, ".reconcile/work/*"+sessionSuffix)); len(files) != 0 {
				t.Errorf("left %v", files)
			}
		})
	}
}

// An agent without the program for the protocol is run by its command, and the record says so.
func TestProgramThatIsNotThere(t *testing.T) {
	g := newRig(t, Options{})
	e := agentOf("text:over ACP")
	command := sh("echo by command")
	other := command.Command()
	other.Output = "text"
	e.Turn().Otherwise = other
	if run := g.do(e); string(run.Result) != `"over ACP"` || run.Turn.Runner != schemas.RunnerACP {
		t.Errorf("%s %+v", run.Result, run.Turn)
	}
	e.Turn().Argv = []string{"no-such-adapter"}
	if run := g.do(e); string(run.Result) != `"by command"` {
		t.Errorf("%s %s", run.Result, run.Message)
	}
}

// The session that a task names is continued, in a run of its own.
func TestTaskNamesASession(t *testing.T) {
	g := newRig(t, Options{})
	e := agentOf("-resume", "-session=s7", "-calls=calls", "text:done")
	e.Turn().Resume = "s7"
	run := g.do(e)
	calls, _ := os.ReadFile(filepath.Join(g.dir, "calls"))
	if string(calls) != "initialize\nsession/resume\nsession/prompt\n" || run.Turn.SessionID != "s7" {
		t.Errorf("%s %+v", calls, run.Turn)
	}
}

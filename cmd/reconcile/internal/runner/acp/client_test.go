package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp/acptest"
	"reconcile.dev/reconcile/state/mutants"
)

// link is a client that is connected to a test agent.
type link struct {
	*Client
	t       *testing.T
	ctx     context.Context
	agent   *Agent
	session *Session
	ended   chan int
}

// connect starts an agent, and begins a session.
func connect(t *testing.T, o Options, args ...string) *link {
	t.Helper()
	l := dial(t, o, args...)
	var err error
	if l.agent, err = l.Initialize(l.ctx, "test", "1"); err != nil {
		t.Fatal(err)
	}
	if l.session, err = l.NewSession(l.ctx, "/work", nil); err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, o Options, args ...string) *link {
	fromAgent, out := io.Pipe()
	in, toAgent := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := acptest.Main(args, in, out)
		out.Close()
		in.Close()
		ended <- code
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	l := &link{Client: New(fromAgent, toAgent, o), t: t, ctx: ctx, ended: ended}
	t.Cleanup(func() {
		cancel()
		l.Close()
		out.Close()
		<-l.Done()
	})
	return l
}

// turn takes a turn and waits until the agent has said everything.
func (l *link) turn() (*Answer, State, error) {
	l.t.Helper()
	a, err := l.Prompt(l.ctx, l.session.ID, "do it")
	l.Close()
	select {
	case <-l.Done():
	case <-l.ctx.Done():
		l.t.Fatal("the connection stays open")
	}
	return a, l.State(), err
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		want        string // stop reason, text, and what differs from the zero state
	}{
		{"success", "text:Hello|text:, world|usage:10:100", "end_turn out=5 context=10/100 Hello, world"},
		{"the last message counts", "text:I will look.|tool:t1:pending|tool:t1:completed|text:Found.", "end_turn out=5 tools=1 Found."},
		{"an update of a tool splits nothing", "tool:t1:pending|text:Fo|tool:t1:completed|text:und.", "end_turn out=5 tools=1 Found."},
		{"a notice while a tool runs", "usage:90:100|tool:t1:pending|text:Info: a.go|tool:t1:completed|usage:91:100|text:Done.", "end_turn out=5 context=91/100 tools=1 Done."},
		{"messages have ids", "part:a:One|part:b:Tw|thought:hm|part:b:o", "end_turn out=5 Two"},
		{"end_turn without usage", "text:Error: 429|end:end_turn:", "end_turn Error: 429"},
		{"1,100 updates at once", "burst:1100|text:done", "end_turn out=5 tools=1 done"},
		{"a long line", "line:12582912|text:done", "end_turn out=5 tools=1 done"},
		{"late updates", "text:do|end:end_turn:5|late:ne", "end_turn out=5 late=1 done"},
		{"two answers", "text:done|end:end_turn:5|again", "end_turn out=5 unmatched=1 done"},
		{"unknown kinds", "text:do|unknown:notice|unknown:subagent_update|unknown:_vendor/x|text:ne",
			"end_turn out=5 others=update _vendor/x:1,update notice:1,update subagent_update:1 done"},
		{"noise", "noise:Debugger attached.|text:done", "end_turn out=5 noise=1 done"},
		{"another session", "foreign:not mine|text:done", "end_turn out=5 foreign=1 done"},
		{"an open tool", "tool:t1:in_progress|text:done", "end_turn out=5 tools=1 open=1 done"},
		{"sessionFailure", "warn:retrying|fail:limit|end:end_turn:5", "end_turn out=5 failure=limit it failed: limit "},
		{"only a warning", "warn:retrying|text:done", "end_turn out=5 done"},
		{"a request that is not offered", "call:fs/read_text_file", "end_turn out=5 others=request fs/read_text_file:1 [-32601]"},
		{"a permission that nobody decides", "ask:t1:rm -rf x", `end_turn out=5 [{"outcome":{"outcome":"cancelled"}}]`},
		{"claims what cannot be", "usage:9000000000000000000:100:1.7e308|text:full", "end_turn out=5 context=1099511627776/100 full"},
		{"claims 96 %", "usage:96000:100000|text:full", "end_turn out=5 context=96000/100000 full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := connect(t, Options{}, strings.Split(c.steps, "|")...)
			a, s, err := l.turn()
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(a, s); got != c.want || s.Idle() == strings.Contains(got, "open") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNamedChoice(t *testing.T) {
	for _, c := range []struct{ choices, name, want string }{
		{`[{"value":"$runtime|m(openai)","name":"m"}]`, "m", "$runtime|m(openai)"},
		{`[{"value":"x","name":"m"},{"value":"m","name":"M"}]`, "m", "m"},
		{`[{"group":"g","options":[{"value":"v","name":"m"}]}]`, "m", "v"},
		{`[{"value":"a","name":"A"}]`, "m", "m"},
		{`{"value":1}`, "m", "m"},
		{``, "m", "m"},
	} {
		if got, _ := (&ConfigOption{Choices: []byte(c.choices)}).named(c.name); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.choices, c.name, got, c.want)
		}
	}
}

// describe returns what differs from nothing.
func describe(a *Answer, s State) string {
	out := []string{a.StopReason}
	if s.Usage != nil {
		out = append(out, fmt.Sprintf("out=%d", s.Usage.OutputTokens))
	}
	if s.ContextSize > 0 {
		out = append(out, fmt.Sprintf("context=%d/%d", s.ContextUsed, s.ContextSize))
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"tools", s.ToolCalls}, {"open", s.Open}, {"skipped", s.Skipped}, {"noise", s.Noise}, {"foreign", s.Foreign},
		{"dropped", s.Dropped}, {"unmatched", s.Unmatched}, {"late", s.Late}, {"refused", s.Refused}} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%s=%d", n.name, n.n))
		}
	}
	if len(s.Others) > 0 {
		var kinds []string
		for k, n := range s.Others {
			kinds = append(kinds, fmt.Sprintf("%s:%d", k, n))
		}
		slices.Sort(kinds)
		out = append(out, "others="+strings.Join(kinds, ","))
	}
	if s.Failure != nil {
		out = append(out, "failure="+s.Failure.Category+" "+s.Failure.Title)
	}
	return strings.Join(append(out, s.Text), " ")
}

func TestLongLinesAreSkipped(t *testing.T) {
	l := connect(t, Options{LineLimit: 1000}, "text:do", "line:5000", "line:70000", "text:ne")
	if a, s, err := l.turn(); err != nil || describe(a, s) != "end_turn out=5 skipped=2 done" {
		t.Errorf("%v %s", err, describe(a, s))
	}
}

func TestTextIsBounded(t *testing.T) {
	l := connect(t, Options{TextLimit: 5}, "text:1234", "text:5678", "text:9")
	if _, s, _ := l.turn(); s.Text != "12345" || !s.TextCut {
		t.Errorf("kept %q, cut %v", s.Text, s.TextCut)
	}
}

func TestErrors(t *testing.T) {
	l := connect(t, Options{}, `error:-32603:Internal error:{"errorKind":"rate_limit","status":429}`)
	_, _, err := l.turn()
	wire := (*Error)(nil)
	if !errors.As(err, &wire) || wire.Code != -32603 || wire.Details() != (Details{Kind: "rate_limit", Status: 429}) {
		t.Errorf("got %v %+v", err, wire)
	}
	for data, want := range map[string]Details{
		`{"codexErrorInfo":"usageLimitExceeded","message":"used up"}`:     {Kind: "usageLimitExceeded", Message: "used up"},
		`{"codexErrorInfo":{"httpConnectionFailed":{"x":1}},"status":""}`: {Kind: "httpConnectionFailed"},
		`{"statusCode":503,"errorKind":7}`:                                {Status: 503},
		`"plain"`:                                                         {Message: "plain"},
		`[1]`:                                                             {},
		``:                                                                {},
	} {
		if got := (&Error{Data: []byte(data)}).Details(); got != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
}

func TestAgentThatEnds(t *testing.T) {
	l := connect(t, Options{}, "text:half", "exit:3")
	if _, s, err := l.turn(); !errors.Is(err, ErrClosed) || s.Text != "half" {
		t.Errorf("%v %q", err, s.Text)
	}
	l = dial(t, Options{}, "-die=initialize")
	if _, err := l.Initialize(l.ctx, "test", "1"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestAuthenticationRequired(t *testing.T) {
	l := dial(t, Options{}, "-refuse=session/new")
	if _, err := l.Initialize(l.ctx, "test", "1"); err != nil {
		t.Fatal(err)
	}
	_, err := l.NewSession(l.ctx, "/work", nil)
	if wire := (*Error)(nil); !errors.As(err, &wire) || wire.Code != codeAuthRequired {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	l := connect(t, Options{}, "text:thinking", "hang")
	answer := make(chan *Answer, 1)
	go func() {
		a, _ := l.Prompt(l.ctx, l.session.ID, "x")
		answer <- a
	}()
	l.until(func(s State) bool { return s.Text != "" })
	if err := l.Cancel(l.session.ID); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.StopReason != "cancelled" {
		t.Errorf("ended with %+v", a)
	}
}

// until waits for a state.
func (l *link) until(ok func(State) bool) State {
	l.t.Helper()
	for {
		if s := l.State(); ok(s) {
			return s
		}
		select {
		case <-l.Changed():
		case <-l.ctx.Done():
			l.t.Fatalf("it stays %+v", l.State())
		}
	}
}

// An agent that ignores the cancellation keeps nobody.
func TestCancelThatIsIgnored(t *testing.T) {
	l := connect(t, Options{}, "text:thinking", "deaf")
	ctx, stop := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Prompt(ctx, l.session.ID, "x")
		ended <- err
	}()
	l.until(func(s State) bool { return s.Text != "" })
	if err := l.Cancel(l.session.ID); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// host is a host that permits.
type host func(context.Context, PermissionRequest) string

func (h host) Permit(ctx context.Context, r PermissionRequest) string { return h(ctx, r) }
func (host) Observe(Event)                                            {}

func TestPermission(t *testing.T) {
	var asked []PermissionRequest
	l := connect(t, Options{Host: host(func(_ context.Context, r PermissionRequest) string {
		asked = append(asked, r)
		if len(asked) == 1 {
			return r.Option(RejectAlways, RejectOnce).ID
		}
		return "an option that nobody offered"
	})}, "ask:t1:rm -rf /", "ask:t1:ls")
	_, s, err := l.turn()
	want := `[{"outcome":{"optionId":"o-reject_once","outcome":"selected"}}][{"outcome":{"outcome":"cancelled"}}]`
	if err != nil || s.Text != want {
		t.Errorf("%v %s", err, s.Text)
	}
	if len(asked) != 2 || strings.Join(asked[0].Command, "|") != "rm|-rf|/" || asked[0].Dir != "/x" || asked[0].Title != "Run rm -rf /" {
		t.Errorf("asked %+v", asked)
	}
}

// A request that is open when the turn is cancelled is answered as cancelled, and a late decision has no effect.
func TestPermissionIsCancelledWithTheTurn(t *testing.T) {
	begun := make(chan struct{})
	l := connect(t, Options{Host: host(func(ctx context.Context, r PermissionRequest) string {
		close(begun)
		<-ctx.Done()
		return r.Options[0].ID
	})}, "ask:t1:rm")
	go l.Prompt(l.ctx, l.session.ID, "x") //nolint:errcheck // its end does not matter
	<-begun
	if s := l.State(); s.Asking != 1 || s.Idle() {
		t.Errorf("%d requests are open", s.Asking)
	}
	if err := l.Cancel(l.session.ID); err != nil {
		t.Fatal(err)
	}
	s := l.until(func(s State) bool { return s.Text != "" })
	if s.Text != `[{"outcome":{"outcome":"cancelled"}}]` || s.Asking != 0 {
		t.Errorf("%+v", s)
	}
}

// Updates before the answer to session/new belong to the session, but to no turn.
func TestEarlyUpdates(t *testing.T) {
	l := connect(t, Options{}, "-early=hello", "end:end_turn:5")
	if a, s, err := l.turn(); err != nil || describe(a, s) != "end_turn out=5 context=1/100 " {
		t.Errorf("%v %s", err, describe(a, s))
	}
}

func TestResume(t *testing.T) {
	for _, offer := range []string{"-resume", "-load"} {
		l := dial(t, Options{}, offer, "text:again")
		agent, err := l.Initialize(l.ctx, "test", "1")
		if err != nil || agent.Resumes() != (offer == "-resume") || agent.Loads() != (offer == "-load") {
			t.Fatalf("%v %+v", err, agent)
		}
		if l.session, err = l.Resume(l.ctx, agent, "s1", "/work", nil); err != nil || l.session.ID != "s1" {
			t.Fatal(err)
		}
		if a, s, err := l.turn(); err != nil || describe(a, s) != "end_turn out=5 again" {
			t.Errorf("%s: %v %s", offer, err, describe(a, s))
		}
	}
}

func TestSessionThatIsGone(t *testing.T) {
	l := dial(t, Options{}, "-forget", "text:new")
	agent, err := l.Initialize(l.ctx, "test", "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Resume(l.ctx, agent, "old", "/work", nil); err == nil {
		t.Fatal("resumed")
	}
	if l.session, err = l.NewSession(l.ctx, "/work", nil); err != nil {
		t.Fatal(err)
	}
	if a, s, err := l.turn(); err != nil || describe(a, s) != "end_turn out=5 new" {
		t.Errorf("%v %s", err, describe(a, s))
	}
}

func TestModes(t *testing.T) {
	l := connect(t, Options{}, "-modes=default,edit", "text:x")
	for mode, want := range map[string]error{"default": nil, "edit": nil, "yolo": errMode} {
		if err := l.SetMode(l.ctx, l.session, mode); !errors.Is(err, want) {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if err := l.SetModel(l.ctx, l.session, "m"); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	if _, s, _ := l.turn(); s.Mode != "edit" {
		t.Errorf("the mode is %q", s.Mode)
	}
}

// An agent that does not read its input, and only asks, does not block the reader, and costs bounded memory.
func TestAgentThatDoesNotRead(t *testing.T) {
	fromAgent, out := io.Pipe()
	_, toAgent := io.Pipe() // nobody reads
	c := New(fromAgent, toAgent, Options{})
	go func() {
		for i := range 3 * outgoing {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", i)
		}
		out.Close()
	}()
	select {
	case <-c.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("the reader waits")
	}
	c.Close()
	if s := c.State(); s.Dropped < outgoing || s.Messages != 3*outgoing {
		t.Errorf("%+v", s)
	}
}

// FuzzReader checks that no output of an agent stops the reader, and that what it keeps is bounded.
func FuzzReader(f *testing.F) {
	f.Add("{\"id\":1,\"result\":{\"sessionId\":\"s\"}}\n{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":" +
		"{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}}}\n")
	f.Add("\n\nnull\n[]\n{}\n\"x\"\n{\"id\":null,\"error\":{\"code\":1}}")
	f.Add(`{"id":{},"method":"session/request_permission","params":{"options":[{}],"toolCall":{"rawInput":{"command":[1]}}}}`)
	f.Add(`{"method":"session/update","params":{"update":{"sessionUpdate":7,"used":1e99,"cost":[]}}}` + "\n")
	f.Add(strings.Repeat("x", 3000) + "\n{\"id\":\"1\",\"result\":null}")
	f.Fuzz(func(t *testing.T, said string) {
		in, toAgent := io.Pipe()
		go io.Copy(io.Discard, in) //nolint:errcheck // ends with the pipe
		c := New(strings.NewReader(said), toAgent, Options{LineLimit: 1000, TextLimit: 10})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, err := c.NewSession(ctx, "/", nil)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("the request outlives the connection")
		}
		<-c.Done()
		c.Close()
		s := c.State()
		if len(s.Text) > 10 || len(s.Others) > kindsLimit+1 || s.Open < 0 || s.ContextUsed < 0 {
			t.Errorf("%+v", s)
		}
		for kind := range s.Others {
			if len(kind) > nameLimit || strings.Contains(kind, "\n") {
				t.Errorf("kind %q", kind)
			}
		}
	})
}

// faults are those that the tests must notice.
var faults = []mutants.Mutant{
	{"text of an unknown kind is the agent's", "fold.go", `	default:
		f.other("update " + u.Kind)`, `	default:
		f.chunk(u)`, "TestTurns"},
	{"updates of other sessions are taken", "fold.go", "case p.Session != session:", "case false:", "TestTurns"},
	{"the first message counts", "fold.go", "		f.text.Reset()\n		f.TextCut = false\n", "", "TestTurns"},
	{"a warning is a failure", "fold.go", `if failure.Severity == "error" {`, `if failure.Severity != "" {`, "TestTurns"},
	{"a long line ends the connection", "wire.go", "			l.skipped++\n", "			return nil, false, io.ErrShortBuffer\n", "TestLongLines"},
	{"early updates are lost", "client.go", "	c.early, c.size = append(c.early, params), c.size+len(params)\n", "", "TestEarlyUpdates"},
	{"a cancelled request is granted", "permission.go", "ctx.Err() != nil || ", "", "TestPermissionIsCancelled"},
	{"the client waits for the agent to read", "client.go", "	default:\n		return errNotReading\n", "", "TestAgentThatDoesNotRead"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults}.Run(t)
}

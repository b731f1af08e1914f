//go:build unix

package runner

import (
	"context"
	"strings"
	"testing"
	"time"

	proxy "reconcile.dev/reconcile/cmd/reconcile/internal/meter"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/modeltest"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// testMeter opens endpoints of a proxy without any question.
type testMeter struct{ *proxy.Proxy }

const testKey = "key-of-the-service-0815"

func (m testMeter) Open(_ context.Context, q *settle.Metering, b *schemas.Budget, changed func()) (Endpoint, error) {
	return m.Proxy.Open(proxy.Request{Upstream: q.Upstream, Key: testKey, Budget: b, Changed: changed})
}

// dialogueRig is a runner with a service of models, and the effect of a turn there.
func dialogueRig(t *testing.T, answers ...modeltest.Answer) (*rig, settle.Effect) {
	p := proxy.New(proxy.Options{})
	t.Cleanup(func() { p.Close() })
	s := modeltest.New(t, answers...)
	e := actor("echo")
	c := settle.Command{Output: "text", StdinFormat: "prompt", Stdin: "do it", Metering: &settle.Metering{Upstream: s.URL}}
	e.Task, e.Agent = &settle.HTTPTurn{Command: c, Wire: schemas.WireOpenAI, Model: "m", Tools: schemas.ToolsRead, MaxRequests: 3, MaxTokens: 10}, "model"
	return newRig(t, Options{Meter: testMeter{p}, Backoff: time.Millisecond}), e
}

func TestDialoguesEnd(t *testing.T) {
	again := modeltest.Answer{Tool: "list_files", Args: map[string]any{}, Input: 5, Output: 1}
	for _, c := range []struct {
		name    string
		answers []modeltest.Answer
		change  func(*settle.HTTPTurn)
		want    string
	}{
		{"success", []modeltest.Answer{again, {Text: "done", Input: 5, Output: 1}}, nil, `Succeeded "done"`},
		{"a question", []modeltest.Answer{{Text: "CLARIFICATION NEEDED from architect about Pools: How many?", Output: 9}}, nil, "Asked asks architect about Pools"},
		{"without end", []modeltest.Answer{again}, nil, "Failed request request refused: the turn ended at the agent's limit max_turn_requests"},
		{"a limit with an end", []modeltest.Answer{{Status: 429, Kind: "rate_limit_error", Message: "slow down " + testKey, RetryAfter: "60"}}, nil,
			"Failed limit rate limit until "},
		{"a service that recovers", []modeltest.Answer{{Status: 503, Message: "overloaded"}, {Text: "x", CutOff: true}, {Status: 429}, {Text: "done", Input: 5, Output: 1}},
			nil, `Succeeded "done"`},
		{"a limit that ends soon", []modeltest.Answer{{Status: 429, RetryAfter: "1"}, {Text: "done", Input: 5, Output: 1}}, nil, `Succeeded "done"`},
		{"a limit that ends too late", []modeltest.Answer{{Status: 429, RetryAfter: "20"}, {Text: "done"}},
			func(h *settle.HTTPTurn) { h.Timeout = 10 * time.Second }, "Failed limit rate limit until "},
		{"for good", []modeltest.Answer{{Status: 503, Message: "broken", NoRetry: true}, {Text: "done"}}, nil, "Failed service service failure: broken"},
		{"a request that is wrong", []modeltest.Answer{{Status: 400, Message: "wrong"}, {Text: "done"}}, nil, "Failed request request refused: wrong"},
		{"the service", []modeltest.Answer{{Status: 503, Message: "overloaded"}}, nil, "Failed service service failure: overloaded"},
		{"the key", []modeltest.Answer{{Status: 401, Message: "no " + testKey}}, nil, "Failed access access denied: no ***"},
		{"cut off", []modeltest.Answer{{Text: "x", CutOff: true}}, nil, "Failed connection connection lost: "},
		{"budget", []modeltest.Answer{again}, func(h *settle.HTTPTurn) { h.Budget = &schemas.Budget{Requests: 2} },
			"Failed budget budget used up: it had used 2 of 2 requests"},
		{"silence", []modeltest.Answer{{Text: "x", Wait: make(chan struct{})}}, func(h *settle.HTTPTurn) { h.Silence = 40 * time.Millisecond },
			"Failed connection connection lost: silent for 40ms; the turn was ended"},
		{"timeout", []modeltest.Answer{{Text: "x", Wait: make(chan struct{})}}, func(h *settle.HTTPTurn) { h.Timeout = 40 * time.Millisecond },
			"TimedOut unknown timed out after 40ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, e := dialogueRig(t, c.answers...)
			if c.change != nil {
				c.change(e.Task.(*settle.HTTPTurn))
			}
			run := g.do(e)
			if got := outcomeOf(run); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if run.Turn == nil || run.Turn.Runner != schemas.RunnerHTTP || run.Turn.Usage != nil && run.Turn.UsageFrom != schemas.UsageFromProxy {
				t.Errorf("the record has %+v", run.Turn)
			}
			if strings.Contains(run.Message+run.Output, testKey) {
				t.Errorf("the key is on record: %s", run.Message)
			}
		})
	}
}

// TestDialogueContext checks that a turn at an endpoint notes the shares of its context while it works.
func TestDialogueContext(t *testing.T) {
	waits := modeltest.Answer{Text: "x", Wait: make(chan struct{})}
	g, e := dialogueRig(t, modeltest.Answer{Tool: "list_files", Args: map[string]any{}, Input: 600, Output: 1}, waits)
	e.Task.(*settle.HTTPTurn).Context = &settle.Context{Marks: []int{50, 90}, Window: 1000}
	g.Submit(e)
	r := g.until(func(r settle.Report) bool {
		return r.Kind == settle.Progressed && r.Turn != nil && len(r.Turn.Marks) > 0
	})
	if m := r.Turn.Marks[0]; m.Percent != 50 || m.Used != 600 || m.Window != 1000 {
		t.Errorf("during the turn: %+v", m)
	}
	g.Cancel(e.Key, "full")
	r = g.until(func(r settle.Report) bool { return r.Kind == settle.Finished })
	if m := r.Run.Turn.Marks; len(m) != 1 || m[0].Percent != 50 {
		t.Errorf("on record: %+v", m)
	}
}

// TestDialoguesAreCancelledAndInterrupted tests that nothing is recorded of an interrupted one, so that it begins again.
func TestDialoguesAreCancelledAndInterrupted(t *testing.T) {
	waits := modeltest.Answer{Text: "x", Wait: make(chan struct{})}
	started := func(r settle.Report) bool { return r.Kind == settle.Started }
	g, e := dialogueRig(t, waits)
	g.Submit(e)
	g.until(started)
	g.Cancel(e.Key, "not wanted")
	if r := g.until(func(r settle.Report) bool { return r.Kind == settle.Finished }); r.Run.Outcome != schemas.OutcomeCancelled {
		t.Errorf("cancelled: %+v", r.Run)
	}
	g, e = dialogueRig(t, waits)
	g.Submit(e)
	g.until(started)
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, r := range g.Drain() {
		if r.Kind == settle.Finished {
			t.Errorf("interrupted: %+v", r.Run)
		}
	}
}

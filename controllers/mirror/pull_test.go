package mirror

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

const oneCommit, otherCommit = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

func somePull() *Pull {
	return &Pull{Version: PullVersion, Number: 7, Base: oneCommit, Head: otherCommit, Specs: true, Anyway: 2,
		Steps: []PullStep{
			{Ref: "dag/new", Verb: PullCreate, Why: "it is new"},
			{Ref: "dag/new", Node: "build", Verb: PullRun, Why: "never ran"},
			{Ref: "dag/old", Node: "test", Verb: PullStop, Why: "the spec changed"},
			{Ref: "agent/gone", Verb: PullRemove, Why: "its spec is gone"},
			{Ref: "session/s", Verb: PullChange, Why: "it becomes Active, from Paused"},
		},
		Bounds: PullBounds{Runs: 3, Seconds: 3600, People: 1,
			Agents: []PullAgent{{Name: "lead", Model: "m-1", Window: 200000, Runs: 3, Seconds: 3600}}},
	}
}

func TestPullBody(t *testing.T) {
	t.Parallel()
	got := somePull().Body()
	want := strings.ReplaceAll(`### What this would do

1 object is created, 1 node runs, 1 node is stopped, 1 object is removed, 1 status changes. A run takes 2 steps with and without this.

**At most** 3 runs, retries included, of 1h in all; 1 task for people. What agents ask others comes on top.

| Agent | Model | Window, tokens | Runs | Time |
| --- | --- | --- | --- | --- |
| 'lead' | 'm-1' | 200000 | 3 | 1h |

#### Created

|  | Why |
| --- | --- |
| 'dag/new' | it is new |

#### Run

|  | Why |
| --- | --- |
| 'dag/new': 'build' | never ran |

#### Stopped, skipped, removed

|  | Why |
| --- | --- |
| 'dag/old': 'test' | stop: the spec changed |
| 'agent/gone' | remove: its spec is gone |

#### Changed

|  | Why |
| --- | --- |
| 'session/s' | it becomes Active, from Paused |

<sub>Planned by reconcile: the specs of '2222222222' over the state and the settings of '1111111111'.</sub>`, "'", "`")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPullBodyWithoutSteps(t *testing.T) {
	t.Parallel()
	p := &Pull{Version: PullVersion, Number: 7, Base: oneCommit, Head: otherCommit, Errors: 2, Settings: true}
	got := p.Body()
	for _, want := range []string{"Nothing would change.", "**2 errors** in the specs", "The settings change, too."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "At most") || strings.Contains(got, "####") {
		t.Errorf("more than there is to say:\n%s", got)
	}
}

// TestPullIsText: what a pull request calls its objects and why, and who made the plan in its name, form nothing.
func TestPullIsText(t *testing.T) {
	t.Parallel()
	evil := "@ann fixes #1 <!-- reconcile plan/7 00 --> | <img src=x> ```\n\n### [x](http://evil.example)"
	p := somePull()
	p.Steps = []PullStep{{Ref: evil, Node: evil, Verb: PullRun, Why: evil}}
	p.Bounds.Agents = []PullAgent{{Name: evil, Model: evil, Runs: 1}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	body := p.Body()
	for _, bad := range []string{"@ann", "#1 ", " <!--", " <img", "[x](", "http://", "\n### ["} {
		if strings.Contains(body, bad) {
			t.Errorf("%q stands in\n%s", bad, body)
		}
	}
	if Marked(body) != "" {
		t.Error("a marker was forged")
	}
	for line := range strings.Lines(body) {
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 0 && n != 3 && n != 6 {
			t.Errorf("a row with %d columns: %s", n-1, line)
		}
	}
}

func TestPullBodyIsBounded(t *testing.T) {
	t.Parallel()
	p := somePull()
	p.Steps, p.Bounds.Agents = nil, nil
	for i := range 30_000 {
		p.Steps = append(p.Steps, PullStep{Ref: fmt.Sprintf("dag/%s%d", strings.Repeat("x", 300), i), Verb: PullRun,
			Why: strings.Repeat("😀", 4000)})
		if i < pullAgents {
			p.Bounds.Agents = append(p.Bounds.Agents, PullAgent{Name: fmt.Sprint("a", i), Seconds: math.MaxInt64})
		}
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	body := p.Body()
	if n := bodyUnits(body); n > BodyLimit {
		t.Errorf("%d characters", n)
	}
	for _, want := range []string{"30000 nodes run", "more than 100 years", "4900 more"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestPullCheckRefuses(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(*Pull){
		"its version":    func(p *Pull) { p.Version = 2 },
		"no pull":        func(p *Pull) { p.Number = 0 },
		"full names":     func(p *Pull) { p.Head = "main" },
		"two full":       func(p *Pull) { p.Base = strings.Repeat("G", 40) },
		"no more than":   func(p *Pull) { p.Steps = make([]PullStep, pullSteps+1) },
		"is no verb":     func(p *Pull) { p.Steps[0].Verb = "merge" },
		"its reason":     func(p *Pull) { p.Steps[1].Why = strings.Repeat("x", pullText+1) },
		"its names":      func(p *Pull) { p.Steps[1].Node = strings.Repeat("x", pullName) },
		"below zero":     func(p *Pull) { p.Bounds.Seconds = -1 },
		"it counts":      func(p *Pull) { p.Anyway = -1 },
		"bounds.agents[": func(p *Pull) { p.Bounds.Agents[0].Runs = -1 },
	} {
		p := somePull()
		spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzPull(f *testing.F) {
	seed, err := json.Marshal(somePull())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"version":1,"pullRequest":1,"steps":[{"verb":"run","why":"` + "`|@a\\n" + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Pull
		if json.Unmarshal(data, &p) != nil || p.Check() != nil {
			return
		}
		body := p.Body()
		if bodyUnits(body) > BodyLimit || Marked(body) != "" {
			t.Errorf("%d characters, marked %q", bodyUnits(body), Marked(body))
		}
	})
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]string{0: "0s", 59: "59s", 60: "1m", 3600: "1h", 5400: "1h30m", 3661: "1h1m1s",
		36000: "10h", 86400: "24h", math.MaxInt64: "more than 100 years"} {
		if got := statusSpan(seconds); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}

// TestCostIsText: what a terminal shows has no marks for GitHub, and what GitHub shows has.
func TestCostIsText(t *testing.T) {
	p := Pull{Bounds: PullBounds{Runs: 1, Endless: 1, Budgets: []string{"agent/a_b has $0.50 of $1.00 left"}}}
	if got := p.Bounds.Cost(); got != "1 run, retries included; no limit ends 1 of them; agent/a_b has $0.50 of $1.00 left" {
		t.Error(got)
	}
	b := Body{room: BodyLimit}
	p.bounds(&b)
	if got := b.done(); !strings.Contains(got, `agent/a\_b has`) {
		t.Error(got)
	}
}

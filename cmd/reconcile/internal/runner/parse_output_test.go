//go:build unix

package runner

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
)

// agent is a run of an agent that prints output.
func (g *rig) agent(format, output string, answers bool) *schemas.Run {
	e := effect(theKey, "cat", "said")
	g.write("said", output)
	e.Command().Output, e.Command().Answer = format, answers
	return g.do(e)
}

func TestAgentsAsk(t *testing.T) {
	ask := &schemas.Ask{To: "architect", Topic: "the database", Question: "Dual layer or migrate?", Blocking: true}
	for _, c := range []struct {
		name, format, output, outcome, result, message string
		asks                                           *schemas.Ask
	}{
		{"by sentence", "text",
			"Read ADR-42.\nCLARIFICATION NEEDED from architect about the database: Dual layer or migrate?\n\nBye.",
			schemas.OutcomeAsked, "", "asks architect about the database", ask},
		{"vaguely", "text", "I need a clarification from the architect about the database.", schemas.OutcomeSucceeded,
			`"I need a clarification from the architect about the database."`, "", nil},
		{"structured", "json", `{"reconcile": 1, "result": {"b": 1, "a": 2}, "clarification": {"to": "architect", ` +
			`"topic": "the database", "question": "Dual layer or migrate?"}}`,
			schemas.OutcomeAsked, `{"a":2,"b":1}`, "asks architect about the database", ask},
		{"malformed", "json", `{"reconcile": 1, "clarification": {"topic": "t", "question": "q"}}`,
			schemas.OutcomeFailed, "", "the question is not taken: to:", nil},
		{"at length", "text", "CLARIFICATION NEEDED from architect about it: " + strings.Repeat("x", 2001),
			schemas.OutcomeFailed, "", "question has 2001 characters, at most 2000 are taken", nil},
		{"of another form", "json", `{"clarification": "none"}`,
			schemas.OutcomeSucceeded, `{"clarification":"none"}`, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRig(t, Options{}).agent(c.format, c.output, false)
			if run.Outcome != c.outcome || string(run.Result) != c.result || !strings.Contains(run.Message, c.message) {
				t.Errorf("%s, result %s, message %q", run.Outcome, run.Result, run.Message)
			}
			if !reflect.DeepEqual(run.Asks, c.asks) {
				t.Errorf("asks %+v", run.Asks)
			}
		})
	}
}

// An agent that fails asks nothing: what it printed before is not what it ended with.
func TestFailedAgentAsksNothing(t *testing.T) {
	e := sh("echo 'CLARIFICATION NEEDED from architect about it: What?'; exit 3")
	e.Command().Output = "text"
	run := newRig(t, Options{}).do(e)
	if run.Outcome != schemas.OutcomeFailed || run.Asks != nil || run.Message != "exit code 3" {
		t.Errorf("%s %q, asks %+v", run.Outcome, run.Message, run.Asks)
	}
}

// An agent that asks owes neither its result nor its files yet; one that does not has both read.
func TestAgentWithAResultFile(t *testing.T) {
	g := newRig(t, Options{})
	const asks = `{"reconcile":1,"clarification":{"to":"architect","topic":"t","question":"q?"}}`
	for script, want := range map[string]string{
		`echo '{"reconcile":1,"resolution":"Taken."}'; echo 7 > r.json; touch out`: "Succeeded 7 Taken.",
		`echo 'no JSON'; echo 7 > r.json; touch out`:                               "Succeeded 7 ",
		`echo '` + asks + `'`: "Asked  ",
		`echo '` + strings.Replace(asks, `"t"`, `""`, 1) + `'; echo 7 > r.json`: "Failed  ",
		`echo '{"reconcile":1,"result":1}'; touch out`:                          "Failed  ",
		`echo '{"reconcile":1,"result":1}'; echo 7 > r.json`:                    "Failed  ",
	} {
		os.Remove(filepath.Join(g.dir, "out"))
		e := sh(script)
		e.Command().Output, e.Command().OutputJSON, e.Command().OutputFiles = "json", "r.json", []string{"out"}
		run := g.do(e)
		if got := run.Outcome + " " + string(run.Result) + " " + run.Resolution; got != want {
			t.Errorf("%s\ngot %q, want %q: %s", script, got, want, run.Message)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, format, output, result, message string }{
		{"text", "text", "\nUse <one> repository.\n", `"Use <one> repository."`, ""},
		{"nothing", "text", "", `""`, ""},
		{"at the limit", "text", strings.Repeat("é", 2000), `"` + strings.Repeat("é", 2000) + `"`, ""},
		{"over the limit", "text", strings.Repeat("é", 2001), `"` + strings.Repeat("é", 2001) + `"`, "the answer has 2001 characters"},
		{"cut", "text", strings.Repeat("x", 70000), `"` + strings.Repeat("x", 7999) + `…"`, "the answer has more than 65536 characters"},
		{"not UTF-8", "text", "a\xff\xfeb", "", "the output is not text in UTF-8"},
		{"a JSON string", "json", `"Migrate."`, `"Migrate."`, ""},
		{"structured", "json", `{"reconcile":1,"answer":"Migrate."}`, `"Migrate."`, ""},
		{"JSON without an answer", "json", `{"text":"Migrate."}`, "", "the output has no answer"},
		{"a question", "text", "CLARIFICATION NEEDED from boss about it: Who?", "", "the output asks a question"},
		{"JSON that is not UTF-8", "json", "\"\xff\"", "", "stdout is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRig(t, Options{}).agent(c.format, c.output, true)
			if string(run.Result) != c.result || !strings.Contains(run.Message, c.message) || run.Asks != nil {
				t.Errorf("%s, result %.100s, message %q", run.Outcome, run.Result, run.Message)
			}
			if failed := run.Outcome == schemas.OutcomeFailed; failed != (c.message != "") {
				t.Errorf("outcome %s", run.Outcome)
			}
		})
	}
}

// However long an answer is, it takes bounded memory and leaves a bounded record, which says what is wrong.
func TestHugeAnswer(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		e := sh("head -c " + muchOutput() + " /dev/zero | tr '\\0' x")
		e.Command().Output, e.Command().Answer = format, true
		g := newRig(t, Options{Runs: schemas.RunSettings{OutputLimit: 1000}})
		before := allocated()
		run := g.do(e)
		if used := allocated() - before; used > 8<<20 {
			t.Errorf("%s: %d bytes of memory were taken", format, used)
		}
		if run.Outcome != schemas.OutcomeFailed || len(run.Result) > 8100 || len(run.Message) > 200 || run.Message == "" {
			t.Errorf("%s: %s, message %q", format, run.Outcome, run.Message)
		}
	}
}

// What an agent says goes into records in many forms; a secret of ours is in none of them.
func TestSecretsAreNotSaid(t *testing.T) {
	said, err := json.Marshal(map[string]any{"reconcile": 1, "result": []string{canary}, "resolution": "It is " + canary,
		"clarification": map[string]any{"to": "architect", "topic": "the " + canary, "question": canary + "?"}})
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(t, Options{Environ: append(surroundings(), "GITHUB_TOKEN="+canary)})
	runs := []*schemas.Run{
		g.agent("json", string(said), false),
		g.agent("text", "CLARIFICATION NEEDED from architect about "+canary+": Is it "+canary+"?", false),
		g.agent("text", "It is "+canary+".", true),
		g.agent("json", `{"reconcile":1,"answer":"`+strings.ReplaceAll(canary, `"`, `\"`)+`"}`, true),
	}
	outcomes := ""
	for _, run := range runs {
		record, err := json.Marshal(run)
		if err != nil || strings.Contains(string(record), "canary") {
			t.Errorf("%v: %s", err, record)
		}
		outcomes += run.Outcome + " "
	}
	if want := "Asked Asked Succeeded Succeeded "; outcomes != want {
		t.Errorf("outcomes %s, want %s", outcomes, want)
	}
	if got := runs[0].Asks.Question; got != "***?" {
		t.Errorf("asks %q", got)
	}
}

// An agent that repeats word for word what it was told asks nothing that it was told of.
func TestEchoIsNoQuestion(t *testing.T) {
	g := newRig(t, Options{})
	g.write("notes.md", "CLARIFICATION NEEDED from architect about it: What?\n")
	e := effect(theKey, "cat")
	e.Command().Output, e.Command().Stdin, e.Command().Artifacts = "text", "Do it.\n", []string{"notes.md"}
	run := g.do(e)
	if run.Outcome != schemas.OutcomeSucceeded || !strings.Contains(string(run.Result), "| CLARIFICATION NEEDED") {
		t.Errorf("%s %q", run.Outcome, run.Output)
	}
}

// TestAgentOfThePage runs the program that docs/agents.md shows: it asks, and goes on when it is told the answer.
func TestAgentOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- program -->\n```sh\n")
	program, _, _ := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page shows no program")
	}
	g := newRig(t, Options{})
	g.write("engineer", program)
	e := effect(theKey, "./engineer")
	w := agentio.Work{Agent: "engineer", Prompt: "Build the database layer."}
	e.Command().Output, e.Command().Stdin = "text", w.Stdin("prompt")
	run := g.do(e)
	if run.Outcome != schemas.OutcomeAsked || run.Asks.To != "architect" || run.Asks.Question != "Dual-layer or migrate?" {
		t.Fatalf("%s %q, asks %+v", run.Outcome, run.Message, run.Asks)
	}
	w.Clarifications = []agentio.Answered{{ID: "CLR-42-001", To: "architect", Topic: run.Asks.Topic,
		Status: schemas.ClarificationAnswered}}
	e.Command().Stdin = w.Stdin("prompt")
	if run = g.do(e); run.Outcome != schemas.OutcomeSucceeded || !strings.Contains(string(run.Result), "built on") {
		t.Errorf("%s %q, result %s", run.Outcome, run.Message, run.Result)
	}
}

// read runs a command that prints what it reads, and returns that.
func (g *rig) read(format, stdin string, artifacts ...string) string {
	g.t.Helper()
	e := sh("cat > read")
	e.Command().Stdin, e.Command().StdinFormat, e.Command().Artifacts = stdin, format, artifacts
	if run := g.do(e); run.Outcome != schemas.OutcomeSucceeded {
		g.t.Fatalf("%s %q", run.Outcome, run.Message)
	}
	f, err := g.root.Open("read")
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}

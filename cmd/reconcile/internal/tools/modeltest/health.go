package modeltest

import "strings"

// Health decides what a model says to Claude Code and to Codex in examples/health-endpoint. The engineer asks, writes half of the work until its
// context is full, and says in its next conversation that all is done; it then mends what the inspector and the tester send back. Before
// its first change it meets a rate limit.
func Health() func(body string) Answer {
	limited := false
	return func(body string) Answer {
		q := read(body)
		if !q.tools {
			return Answer{Text: "ok"} // a request besides, as for a title
		}
		a := q.health()
		if !limited && a.Tool != "" && q.answered() {
			limited = true
			return Answer{Status: 429, Kind: "rate_limit_error", Message: "too many requests", RetryAfter: "1"}
		}
		if a.Input == 0 {
			a.Input = 1000
		}
		a.Output = 20
		return a
	}
}

// fullContext is what a conversation has used when it has to be handed over, of 200,000 tokens.
const fullContext = 195000

// health is the next step in a task of the example.
func (q request) health() Answer {
	has := func(text string) bool { return strings.Contains(q.task, text) }
	switch {
	case has("is handed over"):
		return Answer{Text: `{"accept": true, "instructions": "The route comes after that of greet."}`}
	case has("asks you, product-manager"):
		return Answer{Text: "The word ok, and nothing else."}
	case has("Write down in docs/requirements.md"):
		return q.play("The requirements are there.", q.file("docs/requirements.md", "# Requirements\n\nWhoever runs the server can ask it whether it works.\n"))
	case has("Write down in docs/design.md"):
		return q.play("The design is there.", q.file("docs/design.md", "# Design\n\nGET /health, in a file of its own: health.go.\n"))
	case has("Announce the endpoint"):
		return q.play("It is announced.", q.file("CHANGELOG.md", "# 0.2.0\n\nGET /health says whether the server works.\n"))
	case has("sent back by the tester"):
		return q.play("The answer is ok now.", q.reads("health.go"), q.file("health.go", handler("ok")))
	case has("sent back by the inspector"):
		return q.play("The file is formatted.", q.reads("health.go"), q.file("health.go", handler("fine")))
	case has("in a new conversation"):
		const route = "\tmux.HandleFunc(\"GET /greet\", greet)\n"
		return q.play("The endpoint is there, and all tests pass.", q.reads("routes.go"),
			q.inserts("routes.go", route, "\tmux.HandleFunc(\"GET /health\", health)\n"), q.file("health_test.go", healthTest))
	case q.answered():
		full, never := q.reads("routes.go"), Answer{Wait: make(chan struct{})}
		full.Input = fullContext
		return q.play("", q.file("health.go", strings.ReplaceAll(handler("fine"), "\t", "")), full, never)
	case has("Build what docs/design.md says"):
		return Answer{Text: "CLARIFICATION NEEDED from product-manager about the answer: What does GET /health answer?"}
	}
	return Answer{Text: "ok"}
}

// answered reports whether the task has the answer to the engineer's question.
func (q request) answered() bool { return strings.Contains(q.task, "The word ok, and nothing else.") }

// handler is the file with the handler, which answers with a word.
func handler(word string) string {
	return "package main\n\nimport (\n\t\"fmt\"\n\t\"net/http\"\n)\n\n// health answers that the server works.\n" +
		"func health(w http.ResponseWriter, _ *http.Request) {\n\tfmt.Fprintln(w, \"" + word + "\")\n}\n"
}

const healthTest = `package main

import (
	"net/http"
	"testing"
)

func TestHealth(t *testing.T) {
	if code, text := ask("/health"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("GET /health = %d %q, want 200 and ok", code, text)
	}
}
`

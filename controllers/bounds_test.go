package controllers

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func TestBound(t *testing.T) {
	t.Parallel()
	tree := boundsTree(t, map[string]string{
		"specs/sessions/s.yaml": envelope("Session", "s", "owner: ann"),
		"specs/agents/quick.yaml": envelope("Agent", "quick", "model: m-1", "contextWindow: 1000",
			"budget: {tokens: 5000, costUSD: 2}", "runner: {command: {argv: [work]}}"),
		"specs/agents/person.yaml": envelope("Agent", "person", "runner: {human: {}}"),
		"specs/dags/d.yaml": envelope("DAG", "d", "session: s", "policy: {timeout: 20m, retry: {limit: 2}}", "nodes:",
			"- {name: none, run: [a]}",                                // 3 x 20m, the DAG's
			"- {name: own, run: [a], timeout: 5m, retry: {limit: 0}}", // 5m
			"- {name: asks, agent: quick, prompt: p}",                 // 3 x 10m, the agent's
			"- {name: longer, agent: quick, prompt: p, timeout: 1h}",  // 3 x 20m
			"- {name: waits, agent: person, prompt: p}"),
		"specs/dags/free.yaml": envelope("DAG", "free", "session: s", "nodes:", "- {name: on, run: [a], retry: {limit: 4}}"),
	})
	step := func(dag, node, verb string) settle.Step {
		return settle.Step{Ref: schemas.Ref{Kind: "DAG", Name: dag}, Node: node, Verb: verb}
	}
	got := Bound(tree, []settle.Step{
		step("d", "none", settle.StepRun), step("d", "own", settle.StepRun), step("d", "asks", settle.StepRun), step("d", "longer", settle.StepRun),
		step("d", "waits", settle.StepRun), step("d", "nobody", settle.StepRun), step("free", "on", settle.StepRun),
		step("d", "own", settle.StepSkip), step("d", "", settle.StepWrite), step("d", "gone", settle.StepRun), step("gone", "own", settle.StepRun),
	}, time.Now())
	if left := []string{"agent/quick has 5000 of 5000 tokens, $2.00 of $2.00 left"}; !slices.Equal(got.Budgets, left) {
		t.Errorf("budgets %q, want %q", got.Budgets, left)
	}
	if got.Runs != 15 || got.Time != 155*time.Minute || got.Endless != 5 || got.People != 1 {
		t.Errorf("%+v, want 15 runs, of them 5 without an end, 2h35m, and one person", got)
	}
	want := []AgentBounds{{Name: "quick", Model: "m-1", Window: 1000, Runs: 6, Time: 90 * time.Minute}}
	if !slices.Equal(got.Agents, want) {
		t.Errorf("agents %+v, want %+v", got.Agents, want)
	}
}

// TestBoundOfAQuestion: it is asked once, and takes no longer than the agent may.
func TestBoundOfAQuestion(t *testing.T) {
	t.Parallel()
	tree := boundsTree(t, map[string]string{
		"specs/agents/b.yaml": envelope("Agent", "b", "canClarify: [a]", "runner: {human: {}}"),
		"specs/agents/a.yaml": envelope("Agent", "a", "runner: {command: {argv: [work], timeout: 90s}}"),
		"specs/q.yaml":        envelope("ClarificationRequest", "q", "from: b", "to: a", "topic: t", "question: why"),
	})
	got := Bound(tree, []settle.Step{{Ref: schemas.Ref{Kind: "ClarificationRequest", Name: "q"}, Node: "round_1", Verb: settle.StepRun}}, time.Now())
	if got.Runs != 1 || got.Time != 90*time.Second || got.Endless != 0 || len(got.Agents) != 1 {
		t.Errorf("%+v, want one run of 1m30s", got)
	}
}

// TestBoundsDoNotOverflow: what is too long to tell is the longest time, never a short or negative one.
func TestBoundsDoNotOverflow(t *testing.T) {
	t.Parallel()
	if got := product(math.MaxInt64/2, 3); got != math.MaxInt64 {
		t.Errorf("product: %v", got)
	}
	if got := product(time.Hour, 101); got != 101*time.Hour {
		t.Errorf("product: %v", got)
	}
	if got := sum(math.MaxInt64-1, time.Hour); got != math.MaxInt64 {
		t.Errorf("sum: %v", got)
	}
}

func envelope(kind, name string, spec ...string) string {
	return "apiVersion: reconcile.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.Join(spec, "\n  ") + "\n"
}

func boundsTree(t *testing.T, files map[string]string) *state.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := state.Open(dir, state.Options{Kinds: Schemas(), Now: time.Now, FileNow: time.Now, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it was only read
	tree, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tree.Problems() {
		if p.Severity == schemas.Error {
			t.Fatal(p.Error())
		}
	}
	return tree
}

package ops_test

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func TestPrompt(t *testing.T) {
	env := small(t)
	write(t, env, "specs/agents/cy.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: cy}\n"+
		"spec: {canClarify: [ada], instructions: {text: Be brief.}, promptTokens: 1000, runner: {command: {argv: [cat]}}}\n")
	write(t, env, "specs/dags/more.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: more}\n"+
		"spec: {session: work, nodes: [{name: write, agent: cy, prompt: Write it., acceptance: [it is written]}]}\n")
	r, err := ops.Prompt(t.Context(), env, ops.PromptRequest{DAG: "dag/more", Node: "write"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	sum := 0
	for _, p := range r.Parts {
		names = append(names, p.Name)
		sum += p.Tokens
	}
	if got, want := strings.Join(names, ", "), "role, instructions, task, acceptance, constraints, whom to ask, how to report"; got != want {
		t.Errorf("the parts are %s, want %s", got, want)
	}
	if r.Agent != "cy" || r.Limit != 1000 || r.Tokens != sum || sum == 0 {
		t.Errorf("the prompt is of %s with %d tokens of %d, its parts have %d", r.Agent, r.Tokens, r.Limit, sum)
	}
	for _, q := range []struct{ dag, node, text string }{
		{"", "write", "needs a DAG and a node"},
		{"dag/more", "wite", `did you mean "write"`},
		{"dag/job", "do", "runs a command"},
		{"session/work", "write", "is no DAG"},
	} {
		_, err := ops.Prompt(t.Context(), env, ops.PromptRequest{DAG: q.dag, Node: q.node})
		badRequest(t, err, q.text)
	}
	if _, err := ops.Prompt(t.Context(), env, ops.PromptRequest{DAG: "dag/job", Node: "look"}); err == nil || !strings.Contains(err.Error(), "is a person") {
		t.Errorf("the prompt of a person's node: %v", err)
	}
}

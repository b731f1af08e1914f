package controllers

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func agentTree(names ...string) *state.Tree {
	var list []*state.Entry
	for _, n := range names {
		spec := &schemas.AgentSpec{Runner: schemas.Runner{Human: &schemas.HumanRunner{}}}
		list = append(list, &state.Entry{Ref: schemas.AgentKind.Ref(n), Object: benchObject(schemas.AgentKind, n, spec)})
	}
	return settle.Tree(state.NewTree(Schemas(), nil, nil, list...), benchNow, nil).Tree
}

func TestFoldAgentStatus(t *testing.T) {
	const idle = `{
    "clarificationId": null,
    "issue": null,
    "lastActivity": "2026-02-27T10:00:00Z",
    "respondingTo": null,
    "status": "idle",
    "waitingOn": null
  }`
	foreign := "{\n  \"architect\": " + idle + ",\n  \"stranger\": {\n    \"status\": \"done\"\n  }\n}\n"
	cases := []struct{ name, old, want string }{
		{"no file", "", "{\n  \"architect\": " + idle + "\n}\n"},
		{"null", "null", "{\n  \"architect\": " + idle + "\n}\n"},
		{"foreign agents stay", `{"stranger":{"status":"done"},"architect":{"status":"stuck"}}`, foreign},
		{"unchanged", foreign, foreign},
		{"unknown fields stay", `{"architect":{"mood":"<good>"}}`,
			"{\n  \"architect\": " + strings.Replace(idle, "    \"resp", "    \"mood\": \"<good>\",\n    \"resp", 1) + "\n}\n"},
		{"no object", `{"architect":7}`, "{\n  \"architect\": " + idle + "\n}\n"},
	}
	for _, c := range cases {
		got, err := agents.FoldStatus([]byte(c.old), agentTree("architect"))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

func TestFoldAgentStatusDropsTheRemoved(t *testing.T) {
	old := `{"engineer":{"status":"idle"},"stranger":{"status":"done"}}`
	gone := &state.Entry{Ref: schemas.AgentKind.Ref("engineer")}
	gone.SetStatus(&schemas.AgentStatus{})
	for name, fold := range map[string]func() ([]byte, error){
		"status file still there": func() ([]byte, error) {
			return agents.FoldStatus([]byte(old), state.NewTree(Schemas(), nil, nil, gone))
		},
		"named": func() ([]byte, error) {
			return agents.FoldStatus([]byte(old), state.NewTree(Schemas(), nil, nil), "engineer")
		},
	} {
		got, err := fold()
		if err != nil || strings.Contains(string(got), "engineer") || !strings.Contains(string(got), "stranger") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestFoldAgentStatusRefusesWhatItCannotRead(t *testing.T) {
	for _, old := range []string{"{", "[]", `"x"`, "<<<<<<< HEAD\n{}"} {
		if got, err := agents.FoldStatus([]byte(old), agentTree("architect")); err == nil {
			t.Errorf("%q was replaced by %s", old, got)
		}
	}
}

package memory

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestFailuresOfCommands: what a command said when it failed is an error that was met, unless somebody tells of it.
func TestFailuresOfCommands(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"Claude Code", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,` +
			`"content":"Exit code 1\n=== RUN TestCache\n--- FAIL: TestCache (0.00s)\n    lru_test.go:12: got nil, want entry\nFAIL"}]}}`,
			"A command failed: --- FAIL: TestCache (0.00s): lru_test.go:12: got nil, want entry"},
		{"Claude Code, parts", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":[{"type":"text","text":"Exit code 1\nsrc/store.go:3:1: undefined: foo"}]}]}}`,
			"A command failed: src/store.go:3:1: undefined: foo"},
		{"Codex", `{"type":"response_item","payload":{"type":"function_call_output","call_id":"1",` +
			`"output":"{\"output\":\"error: undefined: foo in src/store.go:3\\n\",\"metadata\":{\"exit_code\":2}}"}}`,
			"A command failed: error: undefined: foo in src/store.go:3"},
		{"success", `{"type":"response_item","payload":{"type":"function_call_output","call_id":"1",` +
			`"output":"{\"output\":\"error: none\\n\",\"metadata\":{\"exit_code\":0}}"}}`, ""},
		{"an agent's own tool", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":"<tool_use_error>Error: String to replace not found in file.</tool_use_error>"}]}}`, ""},
		{"another tool", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":"TypeError: fetch failed"}]}}`, "A command failed: TypeError: fetch failed"},
		{"a tool of MCP", `{"role":"user","content":[{"type":"tool_result","isError":true,"content":[{"type":"text",` +
			`"text":"looking\nthe ticket 17 does not exist"}]}]}`, "A command failed: the ticket 17 does not exist"},
		{"nothing telling", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":"Exit code 1\n"}]}}`, ""},
		{"told", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":"Exit code 1\n--- FAIL: TestCache (0.00s)\n    lru_test.go:12: got nil"}]}}` + "\n" +
			`{"role":"assistant","content":"TestCache failed because the map was never filled; the root cause was a missing call."}`,
			"TestCache failed because the map was never filled; the root cause was a missing call."},
		{"secret", `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,` +
			`"content":"Exit code 1\nerror: cannot log in with password=hunter2"}]}}`,
			"A command failed: error: cannot log in with password=[redacted:password]"},
	} {
		first := `{"role":"user","content":"go on"}` + "\n"
		messages, err := ReadConversation([]byte(first + c.lines))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, e := range Learn(Source{Agent: "engineer", Messages: messages}).Entries {
			if e.Category != schemas.CategoryError {
				t.Errorf("%s: %s is %s", c.name, e.Content, e.Category)
			}
			got = append(got, e.Content)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: learned %q", c.name, got)
		}
	}
}

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
		{"a tool's message", `{"role":"tool","name":"sh","is_error":true,"content":"rm: cannot remove x: Permission denied"}`,
			"A command failed: rm: cannot remove x: Permission denied"},
		{"a tool's message with its exit code", `{"role":"tool","content":{"exit_code":2,"stderr":"ls: cannot access y"}}`,
			"A command failed: ls: cannot access y"},
		{"a tool's message with a trace", `{"role":"tool","content":"Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad port"}`,
			"A command failed: ValueError: bad port"},
		{"a tool's message of a success with a trace", `{"role":"tool","is_error":false,"content":"Traceback (most recent call last):\nValueError: x"}`, ""},
		{"a tool's message of a success", `{"role":"tool","content":"Exit code: 0\nerror: 0"}`, ""},
		{"an output that speaks of another one", `{"role":"tool","content":"` + strings.Repeat("a line of a page\n", 20) +
			`Exit code: 1\n` + strings.Repeat("a line of a page\n", 20) + `"}`, ""},
		{"Codex, text", `{"type":"response_item","payload":{"type":"function_call_output","output":` +
			`"Exit code: 1\nWall time: 0.5 seconds\nOutput:\nerror: undefined: foo"}}`, "A command failed: error: undefined: foo"},
		{"codex exec", `{"type":"item.completed","item":{"type":"command_execution","command":"make","exit_code":2,` +
			`"aggregated_output":"make: no rule to make target all"}}`, "A command failed: make: no rule to make target all"},
		{"Copilot", `{"type":"tool.execution_complete","data":{"success":false,"error":{"message":"npm ERR! missing script: test"}}}`,
			"A command failed: npm ERR! missing script: test"},
		{"Gemini", `{"role":"user","parts":[{"functionResponse":{"name":"run_shell_command","response":{"output":` +
			`"Command: npm test\nDirectory: (root)\nError: (none)\nStderr: Missing script: test\nExit Code: 1\nSignal: (none)"}}}]}`,
			"A command failed: Missing script: test"},
		{"Gemini, a chat", `{"type":"gemini","content":"","toolCalls":[{"name":"run_shell_command","result":[{"functionResponse":` +
			`{"name":"run_shell_command","response":{"error":"command not found: nmp"}}}]}]}`, "A command failed: command not found: nmp"},
		{"Gemini, a wrong edit", `{"role":"user","parts":[{"functionResponse":{"name":"replace","response":{"error":` +
			`"could not find the string to replace"}}}]}`, ""},
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

// TestWhatFailed: of what tools print, the line that says what went wrong is kept.
func TestWhatFailed(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"java", "Exception in thread \"main\" java.lang.IllegalStateException: no pool\n\tat Main.main(Main.java:5)",
			`Exception in thread "main" java.lang.IllegalStateException: no pool`},
		{"gcc", "main.c:2:7: warning: unused variable 'a'\nmain.c:5:3: error: expected ';'\nmain.c:2:7: note: declared here", "main.c:5:3: error: expected ';'"},
		{"rust", "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3\nnote: run with `RUST_BACKTRACE=1`",
			"thread 'main' panicked at src/main.rs:4:5: index out of bounds: the len is 3"},
		{"TypeScript", "src/app.ts(12,5): error TS2322: Type 'string' is not assignable.\n\nFound 1 error.",
			"src/app.ts(12,5): error TS2322: Type 'string' is not assignable."},
		{"jest", "  ● login › answers 200\n\n    expected 401\n\nRan all test suites.", "● login › answers 200"},
		{"TAP", "ok 1 - opens\nnot ok 2 - closes\n# fail 1", "not ok 2 - closes"},
		{"npm", "npm error code ERESOLVE\nnpm error unable to resolve dependency tree\nnpm error A complete log of this run can be found in: x",
			"npm error unable to resolve dependency tree"},
		{"maven", "[INFO] done\n[ERROR] Failed to execute goal\n[ERROR] -> [Help 1]", "[ERROR] Failed to execute goal"},
	} {
		if got := whatFailed(c.output); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

package memory

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestReadTranscriptForms: every form gives the same three messages.
func TestReadTranscriptForms(t *testing.T) {
	want := []Message{{roleUser, "Use Postgres."}, {roleAssistant, "We chose Postgres."}, {roleEdit, "Modified src/db.go"}}
	for name, text := range map[string]string{
		"role and content": `{"role":"system","content":"Be good."}
{"role":"user","content":"Use Postgres."}
{"role":"assistant","content":[{"type":"text","text":"We chose Postgres."}],"tool_calls":[{"id":"1","type":"function",` +
			`"function":{"name":"edit_file","arguments":"{\"path\":\"src/db.go\"}"}}]}
{"role":"tool","content":"edited"}`,
		"array": `[
 {"role":"user","content":["Use Postgres."]},
 {"role":"assistant","content":[{"type":"text","text":"We chose Postgres."},
   {"type":"tool_use","name":"str_replace_based_edit_tool","input":{"command":"str_replace","path":"src/db.go"}},
   {"type":"tool_use","name":"str_replace_based_edit_tool","input":{"command":"view","path":"src/other.go"}}]}
]`,
		"object": `{"model":"x","messages":[{"role":"user","content":"Use Postgres."},` +
			`{"role":"assistant","content":"We chose Postgres."},{"type":"tool_use","name":"Edit","input":{"file_path":"src/db.go"}}]}`,
		"Claude Code": `{"type":"summary","summary":"A title","leafUuid":"1"}
{"type":"user","cwd":"/w/app","isMeta":true,"message":{"role":"user","content":"Caveat: no"}}
{"type":"user","cwd":"/w/app","message":{"role":"user","content":"Use Postgres."}}
{"type":"user","isSidechain":true,"message":{"role":"user","content":"Look for uses."}}
{"type":"assistant","cwd":"/w/app","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Hm."},` +
			`{"type":"text","text":"We chose Postgres."}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Edit",` +
			`"input":{"file_path":"/w/app/src/db.go","old_string":"a","new_string":"b"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"ok"}]}}
{"type":"system","subtype":"turn_duration"}`,
		"Claude Code, printed": `{"type":"system","subtype":"init","cwd":"/w/app"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Use Postgres."}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"We chose Postgres."},` +
			`{"type":"tool_use","name":"MultiEdit","input":{"file_path":"/w/app/src/db.go"}}]}}
{"type":"result","subtype":"success","result":"We chose Postgres."}`,
		"Codex": `{"type":"session_meta","payload":{"id":"1","cwd":"/w/app","instructions":"Be good."}}
{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text",` +
			`"text":"<environment_context>\n</environment_context>"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Use Postgres."}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"Use Postgres."}}
{"type":"response_item","payload":{"type":"reasoning","summary":[]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"We chose Postgres."}]}}
{"type":"event_msg","payload":{"type":"agent_message","message":"We chose Postgres."}}
{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch",` +
			`"input":"*** Begin Patch\n*** Update File: src/db.go\n@@\n-a\n+b\n*** End Patch\n"}}
{"type":"response_item","payload":{"type":"custom_tool_call_output","output":"Done!"}}`,
		"Codex, older": `{"id":"1","timestamp":"2025-08-01T00:00:00Z","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"Use Postgres."}]}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"We chose Postgres."}]}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"apply_patch <<'EOF'\\n*** Begin Patch\\n` +
			`*** Update File: src/db.go\\n*** End Patch\\nEOF\"]}"}
{"type":"function_call_output","output":"ok"}`,
		"Codex, printed": `{"type":"thread.started","thread_id":"1"}
{"role":"user","content":"Use Postgres."}
{"type":"item.completed","item":{"id":"0","type":"reasoning","text":"**Thinking**"}}
{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"We chose Postgres."}}
{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"src/db.go","kind":"update"}]}}
{"type":"turn.completed","usage":{}}`,
		"Copilot": `{"type":"session.start","data":{"sessionId":"1","context":{"cwd":"/w/app"}},"id":"1"}
{"type":"user.message","data":{"content":"Use Postgres."}}
{"type":"assistant.turn_start","data":{}}
{"type":"assistant.message","data":{"messageId":"2","content":"We chose Postgres.","toolRequests":[]}}
{"type":"tool.execution_start","data":{"toolCallId":"3","toolName":"edit","arguments":{"path":"/w/app/src/db.go"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"3","success":true,"result":{"content":"ok"}}}`,
		"VS Code": `{"version":3,"requesterUsername":"ann","requests":[{"requestId":"1","message":{"text":"Use Postgres.","parts":[]},
 "response":[{"kind":"mcpServersStarting","didStartServerIds":[]},{"value":"We chose Postgres."},
  {"kind":"toolInvocationSerialized","toolId":"copilot_readFile","invocationMessage":"Read"},
  {"kind":"textEditGroup","uri":{"fsPath":"src/db.go","path":"/src/db.go"},"edits":[[]]}]}]}`,
		"VS Code, journal": `{"kind":0,"v":{"version":3,"requests":[{"message":{"text":"Use Postgres."},"response":[` +
			`{"value":"We chose Postgres."},{"kind":"textEditGroup","uri":{"path":"src/db.go"}}]}]}}
{"kind":1,"k":["inputState"],"v":{}}`,
		"Gemini": `{"sessionId":"1","projectHash":"2","messages":[
 {"id":"1","type":"user","content":[{"text":"Use Postgres."}]},
 {"id":"2","type":"info","content":"Switched model."},
 {"id":"3","type":"gemini","content":"We chose Postgres.","thoughts":[{"subject":"x","description":"y"}],
  "toolCalls":[{"id":"4","name":"replace","args":{"file_path":"src/db.go"},"result":[{"functionResponse":{"id":"4"}}]}]}]}`,
		"Gemini, checkpoint": `{"history":[{"role":"user","parts":[{"text":"Use Postgres."}]},
 {"role":"model","parts":[{"text":"Silent.","thought":true},{"text":"We chose Postgres."},
  {"functionCall":{"name":"replace","args":{"file_path":"src/db.go"}}}]},
 {"role":"user","parts":[{"functionResponse":{"name":"replace","response":{"output":"ok"}}}]}]}`,
		"Cursor": `{"role":"user","message":{"content":[{"type":"text","text":"Use Postgres."}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"We chose Postgres."},` +
			`{"type":"tool_use","name":"search_replace","input":{"file_path":"src/db.go"}}]}}`,
	} {
		got, err := ReadConversation([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

func TestReadTranscriptLogs(t *testing.T) {
	got, err := ReadConversation([]byte(`[{"sessionId":"1","messageId":0,"type":"user","message":"Use Postgres."}]`))
	if err != nil || len(got) != 1 || got[0].Content != "Use Postgres." {
		t.Errorf("%v, %q", err, got)
	}
	got, err = ReadConversation([]byte(`{"type":"assistant","isCompactSummary":false,"message":{"role":"assistant","content":"a"}}
{"type":"user","isCompactSummary":true,"message":{"role":"user","content":"## Decisions\n- b"}}
{"type":"compacted","payload":{"message":"c"}}`))
	want := []Message{{roleAssistant, "a"}, {roleSummary, "## Decisions\n- b"}, {roleSummary, "c"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %q", err, got)
	}
}

// TestReadTranscriptBroken: what is broken or unknown is counted, and the rest is read.
func TestReadTranscriptBroken(t *testing.T) {
	const good = `{"role":"user","content":"hello there"}`
	for text, skipped := range map[string]int{
		good: 0, "\ufeff" + good + "\r\n\r\n": 0, good + "\n{\"role\":\"assis": 1, "not json\n" + good + "\n[1,2]\n7\nnull\n\"x\"": 6,
		`{"role":"user","content":7}` + "\n" + good: 0, `{"role":"robot","content":"x"}` + "\n" + good: 1,
		"{\"role\":\"user\",\"content\":\"a\\u0000b\"}\n{}\n" + good: 1, good + "\n" + good: 0,
		`{"role":7,"content":"x"}` + "\n" + good: 1, `{"type":"future","blob":[]}` + "\n" + good: 1,
	} {
		got, err := readTranscript([]byte(text))
		if err != nil || got.Skipped != skipped || got.Messages[len(got.Messages)-1].Content != "hello there" {
			t.Errorf("%q: %v, %+v, want %d skipped", text, err, got, skipped)
		}
	}
	for _, text := range []string{"", " \n", "\ufeff", "Just text.\nOn two lines.", "{}", "[]", "null", "{", "[[[", "[1]", `"x"`,
		`{"messages":[]}`, `{"role":"user","content":""}`, `{"requests":[{}]}`, "\x00\x00", "\xff\xfe{\x00", strings.Repeat("[", 100_000),
		strings.Repeat(`{"payload":`, 20_000), `{"type":"response_item","payload":{"type":"response_item","payload":{}}}`} {
		if got, err := readTranscript([]byte(text)); !errors.Is(err, errNoConversation) || got.Messages != nil {
			t.Errorf("%.40q: %v, %v", text, err, got)
		}
	}
}

// TestReadTranscriptLarge: long lines, many lines and any characters are read as they are.
func TestReadTranscriptLarge(t *testing.T) {
	long := strings.Repeat("Chose 👩‍👩‍👧‍👦 مرحبا. ", 40_000)
	var b strings.Builder
	fmt.Fprintf(&b, "{\"role\":\"user\",\"content\":%q}\r\n", strings.TrimSpace(long))
	for i := range 20_000 {
		fmt.Fprintf(&b, "{\"role\":\"assistant\",\"content\":\"Message %d.\"}\r\n", i)
	}
	got, err := ReadConversation([]byte(b.String()))
	if err != nil || len(got) != 20_001 || got[0].Content != strings.TrimSpace(long) || got[20_000].Content != "Message 19999." {
		t.Errorf("%v, %d messages", err, len(got))
	}
}

func TestEditsOutsideOfTheFolder(t *testing.T) {
	got, err := ReadConversation([]byte(`{"type":"session_meta","payload":{"cwd":"C:\\work\\app"}}
{"role":"assistant","content":"Done so far."}
{"type":"tool_use","name":"Write","input":{"file_path":"C:\\work\\app\\src\\a.go"}}
{"type":"tool_use","name":"Write","input":{"file_path":"/etc/passwd"}}
{"type":"tool_use","name":"Write","input":{"file_path":"../../x"}}
{"type":"tool_use","name":"Read","input":{"file_path":"src/b.go"}}
{"type":"tool_use","name":"Write","input":{"file_path":"src/a\nb.go"}}
{"type":"tool_use","name":"Write","input":{"file_path":"./src//a.go"}}`))
	if err != nil || len(got) != 2 || got[1] != (Message{roleEdit, "Wrote src/a.go\nWrote /etc/passwd\nWrote ../../x"}) {
		t.Fatalf("%v, %q", err, got)
	}
	if text := new(Source).located(got[1].Content); text != "Wrote src/a.go" {
		t.Errorf("of the project: %q", text)
	}
}

func FuzzReadTranscript(f *testing.F) {
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"}]}}`))
	f.Add([]byte(`{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[1]}"}}`))
	f.Add([]byte("[{\"requests\":[{\"message\":{\"text\":\"a\"},\"response\":[{\"value\":\"b\"},7,null]}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readTranscript(data)
		if (err == nil) != (len(got.Messages) > 0) {
			t.Errorf("%v with %d messages", err, len(got.Messages))
		}
		size := 0
		for _, m := range got.Messages {
			size += len(m.Content)
			if strings.TrimSpace(m.Content) == "" {
				t.Errorf("an empty message of %s", m.Role)
			}
		}
		if size > 4*len(data)+100 { // a path is told with its verb, what is invalid is replaced by three bytes
			t.Errorf("%d bytes of messages from %d", size, len(data))
		}
	})
}

package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

// readings are what the recorded outputs of real agents say. A file's name begins with the name of its profile.
var readings = map[string]string{
	"claude-ok.jsonl": `"All done." succeeded model=claude-opus-5-5 session=4c8d8ad9-fa81-44d2-bfad-e1b0e6cf3e90 stop=end_turn tools=0 cost=0.00542 ` +
		`{"inputTokens":1300,"outputTokens":30,"cachedInputTokens":100,"contextUsed":1300,"contextWindow":1000000}`,
	"claude-resume.jsonl": `"All done." succeeded model=claude-opus-5-5 session=4c8d8ad9-fa81-44d2-bfad-e1b0e6cf3e90 stop=end_turn tools=0 cost=0.00542 ` +
		`{"inputTokens":1300,"outputTokens":30,"cachedInputTokens":100,"contextUsed":1300,"contextWindow":1000000}`,
	"claude-tool.jsonl": `"Wrote it." succeeded model=claude-opus-5-5 session=2f47f1e5-31f0-4fec-af7a-237f79307bec stop=end_turn tools=1 cost=0.05650 ` +
		`{"inputTokens":14156,"outputTokens":32,"cachedInputTokens":200,"contextUsed":1600,"contextWindow":1000000}`,
	"claude-limit.jsonl": `"API Error: Request rejected (429) · slow down" rate limit: API Error: Request rejected (429) · slow down ` +
		`model=claude-opus-5-5 session=64cb60c6-ab32-4bd2-b113-09d5eb495715 stop=stop_sequence tools=0 cost=unknown null`,
	"claude-access.jsonl": `"Invalid API key · Fix external API key" access denied: Invalid API key · Fix external API key ` +
		`model=claude-opus-5-5 session=b64e6efb-5ac2-46c7-a3ab-ceb223ec1164 stop=stop_sequence tools=0 cost=unknown null`,
	"codex-ok.jsonl": `"All done." succeeded model= session=01a20bb6-a09d-7560-be62-499e347d172d stop= tools=0 cost=unknown ` +
		`session {"inputTokens":1200,"outputTokens":30,"cachedInputTokens":100}`,
	"codex-resume.jsonl": `"All done." succeeded model= session=01a20bb6-a09d-7560-be62-499e347d172d stop= tools=0 cost=unknown ` +
		`session {"inputTokens":2400,"outputTokens":60,"cachedInputTokens":200}`,
	"codex-limit.jsonl": `"" retries: rate limit: Reconnecting... 1/1 (exceeded retry limit, last status: 429 Too Many Requests) ` +
		`model= session=01a20bb6-a1b2-7432-beff-dbac27461cce stop= tools=0 cost=unknown null`,
	"codex-access.jsonl": `"" access denied: unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:8080/v1/responses ` +
		`model= session=01a20bb7-8c4f-7d92-ad93-3435ab45bd61 stop= tools=0 cost=unknown null`,
	"opencode-ok.jsonl": `"All done." succeeded model= session=ses_df435fa9effeURAnALepWgVUQn stop=stop tools=0 cost=unknown ` +
		`{"inputTokens":1200,"outputTokens":30,"cachedInputTokens":100,"contextUsed":1200}`,
	"opencode-access.jsonl": `"" access denied: invalid x-api-key model= session=ses_df434fb15ffelrV7WtQ4U6KBDg stop= tools=0 cost=unknown null`,
	"copilot-ok.jsonl":      `"All done." succeeded model=fake-model session=583f3b6d-0ccd-4f31-abf0-5f9580e6f25c stop= tools=0 cost=unknown null`,
	"copilot-limit.jsonl":   `"" rate limit: 429 slow down model= session=79919d16-6656-493c-bd0d-4ac4217b7d09 stop= tools=0 cost=unknown null`,
	"copilot-access.jsonl": `"" access denied: Authentication failed with provider at http://127.0.0.1:8080/v1 (HTTP 401). model= ` +
		`session=36f678db-0254-4bd6-8631-1e21e30dddf7 stop= tools=0 cost=unknown null`,
	"gemini-ok.json": `"All done." succeeded model=fake session=8fdad298-f180-435e-8b33-22708c553b10 stop= tools=0 cost=unknown ` +
		`{"requests":1,"inputTokens":1200,"outputTokens":30,"cachedInputTokens":100}`,
	"gemini-limit.json": `"" rate limit: slow down model= session=8fdad298-f180-435e-8b33-22708c553b10 stop= tools=0 cost=unknown null`,
	"qwen-ok.jsonl": `"DONE" succeeded model=qwen3-coder-plus session=c6afb85b-3b44-4b74-869f-71981b2156f6 stop= tools=0 cost=unknown ` +
		`{"inputTokens":27530,"outputTokens":40,"cachedInputTokens":200}`,
}

func TestReadings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json*")
	if err != nil || len(files) != len(readings) {
		t.Fatalf("%d files, %d readings, %v", len(files), len(readings), err)
	}
	for _, f := range files {
		p := profileOf(t, f)
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		whole := NewReader(&p)
		whole.Write(data)
		got := whole.Reading()
		if text, want := describe(got), readings[filepath.Base(f)]; text != want {
			t.Errorf("%s:\n got %s\nwant %s", f, text, want)
		}
		pieces := NewReader(&p)
		for part := range slices.Chunk(data, 7) {
			pieces.Write(part)
		}
		if again := pieces.Reading(); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: in pieces\n got %s\nwant %s", f, describe(again), describe(got))
		}
	}
}

func profileOf(t *testing.T, file string) schemas.Profile {
	t.Helper()
	name, _, _ := strings.Cut(filepath.Base(file), "-")
	p, ok := Find(nil, name)
	if !ok {
		t.Fatalf("%s: no profile %s", file, name)
	}
	return p
}

func describe(r Reading) string {
	end := "unfinished"
	switch {
	case r.Succeeded:
		end = "succeeded"
	case r.Failure != nil:
		end = turns.Describe(turns.Judge(turns.Facts{Error: r.Failure}), time.Time{})
	case r.Retry != nil:
		end = "retries: " + turns.Describe(turns.Judge(turns.Facts{Error: r.Retry}), time.Time{})
	}
	cost := "unknown"
	if r.Turn.CostUSD != nil {
		cost = fmt.Sprintf("%.5f", *r.Turn.CostUSD)
	}
	of, usage := "", r.Turn.Usage
	if r.Turn.SessionUsage != nil {
		of, usage = "session ", r.Turn.SessionUsage
	}
	tokens, _ := json.Marshal(usage) // always marshals
	return fmt.Sprintf("%q %s model=%s session=%s stop=%s tools=%d cost=%s %s%s", r.Text, end, r.Turn.Model, r.Turn.SessionID,
		r.Turn.StopReason, r.Turn.ToolCalls, cost, of, tokens)
}

// TestBuiltin validates the built-in profiles as profiles of settings are.
func TestBuiltin(t *testing.T) {
	names := Names(nil)
	if want := []string{"claude", "codex", "copilot", "gemini", "opencode", "qwen"}; !slices.Equal(names, want) {
		t.Fatalf("the profiles are %v", names)
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": "Settings", "metadata": map[string]any{"name": "settings"},
		"spec": map[string]any{"profiles": table()}})
	if err != nil {
		t.Fatal(err)
	}
	if d := schemas.NewDecoder(schemas.Kinds{schemas.SettingsKind}, 0).Decode(schemas.SettingsPath, text); len(d.Problems) > 0 {
		t.Errorf("%v", d.Problems)
	}
	for _, name := range names {
		p, _ := Find(nil, name)
		if why := Check(nil, &schemas.Runner{Profile: name}); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		if len(p.Version) == 0 || len(p.Folders) == 0 || len(p.ACP) == 0 || len(p.Resume) == 0 || p.Silence == nil {
			t.Errorf("%s: %+v", name, p)
		}
		if !slices.Contains(p.Argv, schemas.ArgModel) || !slices.Contains(p.Argv, schemas.ArgResume) {
			t.Errorf("%s: argv has no place for the model or the session: %q", name, p.Argv)
		}
	}
}

func TestArgs(t *testing.T) {
	for _, c := range []struct{ name, model, resume, want string }{
		{"claude", "", "", "claude -p --output-format stream-json --verbose --permission-mode acceptEdits 0"},
		{"claude", "m", "s", "claude -p --output-format stream-json --verbose --permission-mode acceptEdits --model m --resume s 0"},
		{"codex", "", "s", `codex exec resume s --json -c sandbox_mode="workspace-write" {confined} --skip-git-repo-check --disable plugins --disable apps - 0`},
		{"gemini", "m", "", "gemini --output-format json --approval-mode auto_edit -m m -p {prompt} 8"},
		{"opencode", "m", "s", "opencode run --format json --model m -s s {prompt} 8"},
		{"qwen", "m", "s", "qwen --output-format stream-json --approval-mode auto-edit -m m -r s {prompt} 9"},
		{"copilot", "", "s", "copilot --output-format json --allow-tool write --no-auto-update --resume=s -p {prompt} 8"},
	} {
		p, _ := Find(nil, c.name)
		argv, prompt := Args(&p, &schemas.CommandRunner{Profile: c.name}, c.model, c.resume, false)
		if got := fmt.Sprint(strings.Join(argv, " "), " ", prompt); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	p, _ := Find(nil, "claude")
	argv, _ := Args(&p, &schemas.CommandRunner{Profile: "claude", Argv: []string{"wrapper", "{model}", "x{model}"}}, "m", "s", false)
	if want := []string{"wrapper", "--model", "m", "x{model}"}; !slices.Equal(argv, want) {
		t.Errorf("own argv: %q", argv)
	}
}

func TestFind(t *testing.T) {
	own := map[string]schemas.Profile{
		"claude": {Argv: []string{"my-claude"}, Env: map[string]string{"A": "1"}},
		"mine":   {Argv: []string{"mine"}},
	}
	p, ok := Find(own, "claude")
	if !ok || p.Argv[0] != "my-claude" || len(p.Events) == 0 || p.Env["A"] != "1" || p.Env["DISABLE_AUTOUPDATER"] != "1" {
		t.Errorf("%v %+v", ok, p)
	}
	if built, _ := Find(nil, "claude"); built.Env["A"] != "" || built.Argv[0] != "claude" {
		t.Errorf("the built-in profile changed: %+v", built)
	}
	for name, want := range map[string]string{
		"claud":  `the profile "claud" is not known; is claude meant?`,
		"zzzzzz": `the profile "zzzzzz" is not known; known are claude, codex, copilot, gemini, mine, opencode, qwen`,
		"mine":   `the profile "mine" has no events: nothing would be read from the output`,
		"claude": "", "": "",
	} {
		if got := Check(own, &schemas.Runner{Profile: name}); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestServersNeedAProtocol refuses MCP servers that the agent's program would not be told of.
func TestServersNeedAProtocol(t *testing.T) {
	own := map[string]schemas.Profile{"claude": {ACP: []string{"adapter"}}, "codex": {ACP: []string{}}}
	servers, key := map[string]schemas.MCPServer{"tree": {Argv: []string{"reconcile"}}}, &schemas.KeySource{Env: "X_API_KEY"}
	for _, c := range []struct {
		runner schemas.Runner
		ok     bool
	}{
		{schemas.Runner{Profile: "claude", MCPServers: servers}, true},
		{schemas.Runner{Profile: "claude", MCPServers: servers, KeyFrom: key}, true},
		{schemas.Runner{Command: &schemas.CommandRunner{Profile: "claude"}, MCPServers: servers}, false},
		{schemas.Runner{Command: &schemas.CommandRunner{Profile: "claude"}}, true},
	} {
		if why := Check(own, &c.runner); why == "" != c.ok {
			t.Errorf("%+v: %q", c.runner, why)
		}
	}
	without := map[string]schemas.Profile{"mine": {Argv: []string{"mine"}, ACP: []string{"adapter"}, Events: []schemas.ProfileEvent{{}}}}
	if why := Check(without, &schemas.Runner{Profile: "mine", MCPServers: servers, KeyFrom: key}); !strings.Contains(why, "mcpServers") {
		t.Errorf("a program that cannot be pointed at the proxy: %q", why)
	}
}

// TestTools follows the tool calls that are open, during which silence is normal.
func TestTools(t *testing.T) {
	p, _ := Find(nil, "codex")
	r := NewReader(&p)
	for _, step := range []struct {
		line string
		runs bool
	}{
		{`{"type":"thread.started","thread_id":"t"}`, false},
		{`{"type":"error","message":"Reconnecting... 1/5 (429)"}`, false},
		{`{"type":"item.started","item":{"id":"item_1","type":"command_execution"}}`, true},
		{`Some notice`, true},
		{`{"type":"item.started","item":{"id":"item_1"`, true},
		{`{"type":"item.completed","item":{"id":"item_1","type":"command_execution"}}`, false},
	} {
		r.Write([]byte(step.line + "\n"))
		if r.ToolRuns() != step.runs {
			t.Errorf("after %s: %v", step.line, r.ToolRuns())
		}
	}
	if got := r.Reading(); got.Retry != nil || got.Turn.ToolCalls != 1 {
		t.Errorf("%+v", got)
	}
}

// TestTooLong skips a value that is too long, and reads what follows it.
func TestTooLong(t *testing.T) {
	p, _ := Find(nil, "codex")
	r := NewReader(&p)
	r.Write([]byte(`{"type":"item.completed","item":{"text":"`))
	for range maxValue / 4096 {
		r.Write(bytes.Repeat([]byte("x"), 4096))
	}
	r.Write([]byte("\"}}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":7}}\n"))
	if got := r.Reading(); got.TooLong != 1 || !got.Succeeded || got.Turn.SessionUsage.InputTokens != 7 || cap(r.carry) > 2*maxValue {
		t.Errorf("%+v, capacity %d", got, cap(r.carry))
	}
}

func TestSteps(t *testing.T) {
	p, _ := Find(nil, "opencode")
	r := NewReader(&p)
	for range 2 {
		r.Write([]byte(`{"type":"step_finish","sessionID":"s","part":{"cost":0.25,"tokens":{"input":10,"output":3,"reasoning":2,"cache":{"read":5,"write":1}}}}` + "\n"))
	}
	got := r.Reading().Turn
	if want := (schemas.Usage{InputTokens: 32, OutputTokens: 10, CachedInputTokens: 10, CacheWriteTokens: 2, ContextUsed: 16}); *got.Usage != want || *got.CostUSD != 0.5 {
		t.Errorf("%+v %v", *got.Usage, *got.CostUSD)
	}
}

// TestImplausible: what an agent says of its session counts only where it can be an id, and its cost where sums of it are numbers.
func TestImplausible(t *testing.T) {
	p, _ := Find(nil, "opencode")
	for _, id := range []string{"--dangerous", "a\nb", "\x1b[31m", strings.Repeat("x", 2000)} {
		r := NewReader(&p)
		for _, line := range []map[string]any{{"sessionID": "ses_1", "cost": 0.25}, {"sessionID": id, "cost": 1.7e308}, {"sessionID": "ses_1", "cost": -3}} {
			text, err := json.Marshal(map[string]any{"type": "step_finish", "sessionID": line["sessionID"], "part": map[string]any{"cost": line["cost"]}})
			if err != nil {
				t.Fatal(err)
			}
			r.Write(append(text, '\n'))
		}
		if got := r.Reading().Turn; got.SessionID != "ses_1" || got.CostUSD == nil || *got.CostUSD != 0.25 {
			t.Errorf("%q: %+v", id, got)
		}
	}
}

func TestTurnUsage(t *testing.T) {
	before := &schemas.Turn{SessionUsage: &schemas.Usage{InputTokens: 1200, OutputTokens: 30}}
	got := TurnUsage(&schemas.Usage{InputTokens: 2500, OutputTokens: 60}, before)
	if *got != (schemas.Usage{InputTokens: 1300, OutputTokens: 30}) {
		t.Errorf("%+v", *got)
	}
	if got := TurnUsage(&schemas.Usage{InputTokens: 5}, nil); got.InputTokens != 5 {
		t.Errorf("%+v", *got)
	}
}

func FuzzReader(f *testing.F) {
	for name := range readings {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, strings.HasPrefix(name, "codex"))
	}
	claude, _ := Find(nil, "claude")
	codex, _ := Find(nil, "codex")
	f.Fuzz(func(t *testing.T, data []byte, other bool) {
		p := claude
		if other {
			p = codex
		}
		r := NewReader(&p)
		r.Write(data)
		got := r.Reading()
		if got.Succeeded == (len(got.Missing(&p)) > 0) || got.Succeeded && got.Failure != nil {
			t.Errorf("%+v", got)
		}
	})
}

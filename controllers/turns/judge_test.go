package turns

import (
	"errors"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

var at = time.Date(2026, 11, 24, 13, 0, 0, 0, time.UTC)

func code(n int) *int       { return &n }
func tokens(n int64) *int64 { return &n }

// endings are observed ends of turns, and ends that no agent should reach.
var endings = []struct {
	name string
	Facts
	want string // the description; "" for a success
}{
	// The Agent Client Protocol: what six agents answered to faults.
	{"claude ok", acp(Facts{StopReason: endTurn, OutputTokens: tokens(31), Text: "DONE"}), ""},
	{"claude ok, about limits", acp(Facts{StopReason: endTurn, OutputTokens: tokens(31), Text: "429 Too Many Requests is now handled"}), ""},
	{"claude 429", acp(Facts{Error: &Error{Code: -32603, Kind: "rate_limit", Message: "Internal error"}}), "rate limit: Internal error"},
	{"claude 5xx", acp(Facts{Error: &Error{Code: -32603, Kind: "server_error"}}), "service failure: server_error"},
	{"claude 402", acp(Facts{Error: &Error{Code: -32603, Kind: "unknown", Status: 402}}), "rate limit: unknown"},
	{"claude 401", acp(Facts{Error: &Error{Code: -32000, Message: "Authentication required"}}), "access denied: Authentication required"},
	{"codex 429", acp(Facts{StopReason: endTurn, Text: "exceeded retry limit, last status: 429 Too Many Requests"}),
		"rate limit: exceeded retry limit, last status: 429 Too Many Requests (the turn ended with end_turn, but the model's use of tokens is not known)"},
	{"codex 5xx, no text", acp(Facts{StopReason: endTurn}),
		"the turn ended with end_turn, but the model's use of tokens is not known"},
	{"codex quota", acp(Facts{Error: &Error{Code: -32603, Kind: "usageLimitExceeded", Message: "You've hit your usage limit. Try again in 3 days 4 hours 5 minutes."}}),
		"rate limit until 2026-11-27 17:05 UTC: You've hit your usage limit. Try again in 3 days 4 hours 5 minutes."},
	{"gemini 401", acp(Facts{Error: &Error{Code: 401, Message: "API key not valid"}}), "access denied: API key not valid"},
	{"opencode 429", acp(Facts{Error: &Error{Code: -32603, Message: "Too Many Requests: slow down", RetryAfter: "3900"}}),
		"rate limit until 14:05 UTC: Too Many Requests: slow down"},
	{"opencode rejects", acp(Facts{StopReason: endTurn, OutputTokens: tokens(0)}),
		"the turn ended with end_turn, but the model produced nothing"},
	{"copilot 429", acp(Facts{StopReason: endTurn, Text: "Error: Failed to get response: 429"}),
		"rate limit: Error: Failed to get response: 429 (the turn ended with end_turn, but the model's use of tokens is not known)"},
	{"copilot 401", acp(Facts{StopReason: endTurn, Text: "Error: Authentication failed"}),
		"access denied: Error: Authentication failed (the turn ended with end_turn, but the model's use of tokens is not known)"},
	{"qwen 401", acp(Facts{Error: &Error{Code: -32603, Message: "401 Incorrect API key provided"}}), "access denied: 401 Incorrect API key provided"},
	{"typed failure with end_turn", acp(Facts{StopReason: endTurn, OutputTokens: tokens(5), Error: &Error{Kind: "limit", Message: "Rate limited"}}), "rate limit: Rate limited"},
	// What the metering proxy saw explains a failure, and makes none.
	{"proxy: a limit with an end", acp(Facts{StopReason: endTurn, Wire: &Error{Status: 429, Message: "slow", RetryAfter: "3900"}}), "rate limit until 14:05 UTC: slow"},
	{"proxy: the end of the agent's limit", acp(Facts{Error: &Error{Kind: "rate_limit", Message: "Internal error"}, Wire: &Error{Status: 429, RetryAfter: "3900"}}),
		"rate limit until 14:05 UTC: Internal error"},
	{"proxy: silent after an error", acp(Facts{Silent: 5 * time.Minute, Wire: &Error{Status: 401, Message: "no key"}}), "access denied: no key"},
	{"proxy: a typed failure stays", acp(Facts{Error: &Error{Kind: "authentication_error", Message: "login"}, Wire: &Error{Status: 500}}), "access denied: login"},
	{"proxy: over budget", acp(Facts{StopReason: endTurn, Wire: &Error{Status: 500}, Over: "2 of 2 requests"}), "budget used up: it had used 2 of 2 requests"},
	{"proxy: a failed side request", acp(Facts{StopReason: endTurn, OutputTokens: tokens(3), Wire: &Error{Status: 500}, Over: "2 of 2 requests"}), ""},
	{"died", acp(Facts{Dead: true, StopReason: endTurn, OutputTokens: tokens(5)}), "connection lost: the agent's process or connection ended during the turn"},
	{"late", acp(Facts{Late: "timed out after 3s", StopReason: "cancelled"}), "timed out after 3s"},
	{"late while it retries", acp(Facts{Late: "timed out after 3s", Error: &Error{Status: 503, Message: "busy"}}), "service failure: busy"},
	{"proxy: late after an error", acp(Facts{Late: "timed out after 3s", Wire: &Error{Status: 401, Message: "no key"}}), "access denied: no key"},
	{"silent", acp(Facts{Silent: 5 * time.Minute, StopReason: "cancelled"}), "connection lost: silent for 5m0s; the turn was ended"},
	{"silent while it retries", acp(Facts{Silent: 5 * time.Minute, Error: &Error{Message: "Reconnecting... 1/1 (exceeded retry limit, last status: 429 Too Many Requests)"}}),
		"rate limit: Reconnecting... 1/1 (exceeded retry limit, last status: 429 Too Many Requests) (silent for 5m0s; the turn was ended)"},
	{"cancelled", acp(Facts{StopReason: "cancelled", OutputTokens: tokens(5)}), "the turn ended with cancelled"},
	{"refused", acp(Facts{StopReason: "refusal", OutputTokens: tokens(5)}), "request refused: the model refused the request"},
	{"length", acp(Facts{StopReason: "max_tokens", OutputTokens: tokens(5)}), "request refused: the turn ended at the agent's limit max_tokens"},
	{"no answer at all", acp(Facts{}), "the turn ended with no stop reason"},
	// HTTP.
	{"http ok", http(Facts{StopReason: endTurn, OutputTokens: tokens(1)}), ""},
	{"http 429", http(Facts{Error: &Error{Status: 429, Kind: "rate_limit_error", Message: "slow down", RetryAfter: "Tue, 24 Nov 2026 14:05:00 GMT"}}), "rate limit until 14:05 UTC: slow down"},
	{"http 529", http(Facts{Error: &Error{Status: 529, Kind: "overloaded_error"}}), "service failure: overloaded_error"},
	{"http 400", http(Facts{Error: &Error{Status: 400, Message: "prompt is too long"}}), "request refused: prompt is too long"},
	{"http no route", http(Facts{Error: &Error{Message: "dial tcp 127.0.0.1:1: connect: connection refused"}}), "connection lost: dial tcp 127.0.0.1:1: connect: connection refused"},
	// Commands with a profile.
	{"command ok", command(Facts{ExitCode: code(0)}), ""},
	{"claude is_error with exit code 0", command(Facts{ExitCode: code(0), Error: &Error{Status: 429, Message: "API Error: 429 rate limited"}}), "rate limit: API Error: 429 rate limited"},
	{"claude subscription", command(Facts{ExitCode: code(1), Error: &Error{Message: "Claude AI usage limit reached|1795525500"}}), "rate limit until 13:05 UTC: Claude AI usage limit reached|1795525500"},
	{"codex turn.failed", command(Facts{ExitCode: code(1), Error: &Error{Message: "exceeded retry limit, last status: 429 Too Many Requests. Please try again in 6m0s."}}),
		"rate limit until 13:06 UTC: exceeded retry limit, last status: 429 Too Many Requests. Please try again in 6m0s."},
	{"codex without turn.completed", command(Facts{ExitCode: code(0), Missing: []string{"no turn.completed event"}, Text: "Reconnecting... waiting for network"}),
		"connection lost: Reconnecting... waiting for network (exit code 0, but no turn.completed event)"},
	{"gemini trace", command(Facts{ExitCode: code(145), Text: "Error: API key invalid\n    at a (file:1)\n    at b (file:2)"}), "access denied: Error: API key invalid (exit code 145)"},
	{"exit code alone", command(Facts{ExitCode: code(3), Text: "cannot open src/db"}), "exit code 3"},
	{"signal", command(Facts{ExitCode: code(137), Exit: "ended by SIGKILL from outside"}), "ended by SIGKILL from outside"},
	{"killed", command(Facts{}), "the program did not exit"},
	{"no result", command(Facts{ExitCode: code(0), Output: errors.New("the output is empty")}), "the output is empty"},
}

func acp(f Facts) Facts     { f.Runner, f.At = schemas.RunnerACP, at; return f }
func http(f Facts) Facts    { f.Runner, f.At = schemas.RunnerHTTP, at; return f }
func command(f Facts) Facts { f.Runner, f.At = schemas.RunnerCommand, at; return f }

// TestReported: JSON that says that it is an error is none of a success, and its class is that of what it says.
func TestReported(t *testing.T) {
	for output, want := range map[string]string{
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error"}`: "rate limit: API Error",
		`[{"type":"system"},{"type":"result","is_error":true,"result":"Please run /login"}]`:                "access denied: Please run /login",
		`{"is_error":true}`:                  "the agent says is_error",
		`{"is_error":false,"result":"Done"}`: "",
		`{"is_error":"true"}`:                "",
		`[{"is_error":true},{"result":"x"}]`: "",
		`[]`:                                 "", `"is_error"`: "", `{`: "",
	} {
		f := command(Facts{ExitCode: code(0), Error: Reported([]byte(output))})
		if got := Judge(f); want == "" && got != nil || want != "" && (got == nil || Describe(got, f.At) != want) {
			t.Errorf("%s: %+v, want %q", output, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, e := range endings {
		got := ""
		if v := Judge(e.Facts); v != nil {
			got = Describe(v, at)
		}
		if got != e.want {
			t.Errorf("%s:\n got %q\nwant %q", e.name, got, e.want)
		}
	}
}

// TestEndingsCatch checks that the table would catch judges that trust too much.
func TestEndingsCatch(t *testing.T) {
	for name, trusts := range map[string]func(Facts) bool{
		"the stop reason":                func(f Facts) bool { return f.StopReason == endTurn || f.ExitCode != nil && *f.ExitCode == 0 },
		"the absence of a typed failure": func(f Facts) bool { return f.Error == nil && f.Silent == 0 && (f.ExitCode == nil || *f.ExitCode == 0) },
		"tokens": func(f Facts) bool {
			return f.OutputTokens != nil && *f.OutputTokens > 0 || f.Runner == schemas.RunnerCommand && Judge(f) == nil
		},
		"everything but the process":       func(f Facts) bool { f.Dead = false; return Judge(f) == nil },
		"everything but the typed failure": func(f Facts) bool { f.Error = nil; return Judge(f) == nil },
		"everything but the signs":         func(f Facts) bool { f.Missing = nil; return Judge(f) == nil },
	} {
		caught := false
		for _, e := range endings {
			caught = caught || trusts(e.Facts) != (e.want == "")
		}
		if !caught {
			t.Errorf("a judge that trusts %s passes", name)
		}
	}
}

func TestFirstTime(t *testing.T) {
	for _, c := range []struct{ header, message, want string }{
		{"120", "", "13:02:00"},
		{"1.5", "", "13:00:01.5"},
		{"", "Please try again in 345ms", "13:00:00.345"},
		{"", "Your quota resets in 2h 30 min.", "15:30:00"},
		{"", "limit; reset_at: 1795525500", "13:05:00"},
		{"", `{"resetsAt":"2026-11-24T14:00:00+01:00"}`, ""}, // now: not a time to wait for
		{"", "resets at 2026-11-24T15:30:00.5+01:00", "14:30:00.5"},
		{"2026-11-24T14:30:00Z", "", "14:30:00"},
		{"", "try again in 400 days", ""},
		{"", "resets at 3pm", ""},
		{"", "try again in 5 apples", ""},
		{"-5", "in -5 minutes", ""},
		{"9e99", "", ""},
	} {
		got := ""
		if found := firstTime(at, c.header, c.message); !found.IsZero() {
			got = found.UTC().Format("15:04:05.999")
		}
		if got != c.want {
			t.Errorf("%q %q: %q, want %q", c.header, c.message, got, c.want)
		}
	}
}

// FuzzJudge checks that a verdict has a class and one bounded line, and that a limit ends later.
func FuzzJudge(f *testing.F) {
	for _, e := range endings {
		kind, message, after := "", "", ""
		if e.Error != nil {
			kind, message, after = e.Error.Kind, e.Error.Message, e.Error.RetryAfter
		}
		f.Add(e.StopReason, e.Text, kind, message, after)
	}
	f.Fuzz(func(t *testing.T, stop, text, kind, message, after string) {
		v := Judge(acp(Facts{StopReason: stop, Text: text, Error: &Error{Kind: kind, Message: message, RetryAfter: after}}))
		if v == nil {
			t.Fatal("a turn with an error succeeded")
		}
		if titles[v.Class] == "" {
			t.Errorf("class %q", v.Class)
		}
		if !v.Until.IsZero() && (!v.Until.After(at) || v.Class != schemas.FailureLimit) {
			t.Errorf("%s until %v", v.Class, v.Until)
		}
		if strings.Contains(Describe(v, at), "\n") || len([]rune(v.Message)) > messageLimit {
			t.Errorf("message %q", v.Message)
		}
	})
}

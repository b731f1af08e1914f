package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// streams are streamed answers, and what they say.
var streams = []struct {
	name, wire string
	events     []string
	want       string // text, calls and stop; or the error
	history    string // what the next request has of it
}{
	{"parts of calls", schemas.WireOpenAI, []string{
		`{"choices":[{"delta":{"role":"assistant","content":"I "}}]}`, `{"choices":[{"delta":{"content":"look."}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"two","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, `{"choices":[],"usage":{"prompt_tokens":1}}`, `[DONE]`},
		`I look. one({"x":1}) two({}) tool_use`, `"tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{\"x\":1}"}}`},
	{"a refusal", schemas.WireOpenAI, []string{`{"choices":[{"delta":{"refusal":"No"}}]}`, `{"choices":[{"delta":{"refusal":"."},"finish_reason":"stop"}]}`},
		"No. refusal", ""},
	{"an error", schemas.WireOpenAI, []string{`{"choices":[{"delta":{"content":"x"}}]}`, `{"error":{"message":"overloaded"}}`}, errRefused.Error(), ""},
	{"no end", schemas.WireOpenAI, []string{`{"choices":[{"delta":{"content":"x"}}]}`}, errCutOff.Error(), ""},
	{"no JSON", schemas.WireOpenAI, []string{`x`}, "the answer is not what /chat/completions streams", ""},
	{"thoughts are sent back", schemas.WireAnthropic, []string{
		`{"type":"message_start","message":{}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"one","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}`, `{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`},
		`I look. one({"x":1}) tool_use`, `{"signature":"s1","thinking":"hm","type":"thinking"}`},
	{"a call without arguments", schemas.WireAnthropic, []string{`{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"one","input":{}}}`,
		`{"type":"content_block_stop"}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`}, "one({}) tool_use", ""},
	{"an error", schemas.WireAnthropic, []string{`{"type":"error","error":{"type":"overloaded_error"}}`}, errRefused.Error(), ""},
	{"no end", schemas.WireAnthropic, []string{`{"type":"message_start","message":{}}`}, errCutOff.Error(), ""},
	{"arguments cut", schemas.WireAnthropic, []string{`{"type":"content_block_start","content_block":{"type":"tool_use"}}`,
		`{"type":"content_block_delta","delta":{"partial_json":"{"}}`, `{"type":"content_block_stop"}`}, "the arguments of a tool call are not JSON", ""},
	{"a part of nothing", schemas.WireAnthropic, []string{`{"type":"content_block_delta","delta":{"text":"x"}}`, `{"type":"content_block_stop"}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}, "end_turn", ""},
}

// heardText keeps what is said.
type heardText struct{ strings.Builder }

func (h *heardText) Hear(text string) { h.WriteString(text) }

func TestStreams(t *testing.T) {
	for _, c := range streams {
		t.Run(c.wire+" "+c.name, func(t *testing.T) {
			var heard heardText
			talk := New(Endpoint{Wire: c.wire, Listener: &heard}, nil, "p")
			body := ": a comment\r\n\r\n"
			for _, e := range c.events {
				body += "event: x\r\ndata: " + e + "\r\n\r\n"
			}
			got, err := talk.stream(strings.NewReader(body))
			var r *Reply
			if err == nil {
				r, err = talk.reply(got)
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			parts := []string{r.Text}
			for _, call := range r.Calls {
				parts = append(parts, call.Name+"("+string(call.Args)+")")
			}
			if said := strings.TrimSpace(strings.Join(append(parts, r.Stop), " ")); said != c.want {
				t.Errorf("got %q, want %q", said, c.want)
			}
			if history, _ := json.Marshal(talk.history); !strings.Contains(string(history), c.history) {
				t.Errorf("the next request lacks %s: %s", c.history, history)
			}
			if r.Stop != "refusal" && c.name != "a part of nothing" && heard.String() != r.Text {
				t.Errorf("heard %q of %q", heard.String(), r.Text)
			}
		})
	}
}

// FuzzStream checks that no stream panics, and that one without an end is no answer.
func FuzzStream(f *testing.F) {
	for _, c := range streams {
		f.Add(strings.Join(c.events, "\n\ndata: "), c.wire == schemas.WireAnthropic)
	}
	f.Fuzz(func(t *testing.T, events string, anthropic bool) {
		wire := schemas.WireOpenAI
		if anthropic {
			wire = schemas.WireAnthropic
		}
		talk := New(Endpoint{Wire: wire}, nil, "p")
		got, err := talk.stream(strings.NewReader("data: " + events + "\n\n"))
		if err == nil && !strings.Contains(string(got), `reason":"`) {
			t.Errorf("an answer without an end: %s", got)
		}
		if err == nil {
			_, err = talk.reply(got)
		}
		if errors.Is(err, ErrFinal) {
			t.Error("a stream refuses for good")
		}
	})
}

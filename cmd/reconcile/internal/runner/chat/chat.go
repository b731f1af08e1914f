// Package chat has conversations with models at HTTP endpoints, in the formats of OpenAI's Chat Completions and Anthropic's
// Messages, and the tools that a model can be given there. It starts no process.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Endpoint is where a model is asked.
type Endpoint struct {
	URL, Token string
	Wire       string // one of schemas.WireOpenAI and schemas.WireAnthropic
	Model      string
	MaxTokens  int // of each answer
	// Completion says that MaxTokens is called max_completion_tokens, as OpenAI's own newer models demand.
	Completion bool
	Client     *http.Client
	// Listener gets each part of an answer's text as it arrives; nil: the text is only returned.
	Listener Listener
}

// Listener receives the output of a model while it arrives.
type Listener interface{ Hear(text string) }

// Call is a call of a tool that the model asks for.
type Call struct {
	ID, Name string
	Args     json.RawMessage
}

// Reply is an answer of the model.
type Reply struct {
	Text  string
	Calls []Call
	// Stop is why the answer ended: end_turn, max_tokens, tool_use or refusal, else the endpoint's own word.
	Stop string
}

// Conversation is one conversation with a model. It is not safe for concurrent use.
type Conversation struct {
	endpoint Endpoint
	tools    []Tool
	history  []any // messages in the endpoint's format
}

// New begins a conversation with a prompt.
func New(e Endpoint, tools []Tool, prompt string) *Conversation {
	return &Conversation{endpoint: e, tools: tools, history: []any{object{"role": "user", "content": prompt}}}
}

type object = map[string]any

// longestReply bounds an answer, in bytes.
const longestReply = 32 << 20

// errRefused says that the endpoint answered with an error. The metering proxy knows which one.
var errRefused = errors.New("the endpoint refused the request")

// ErrFinal is ErrRefused of an endpoint that wants no other attempt.
var ErrFinal = fmt.Errorf("%w for good", errRefused)

// Next asks the model to go on.
func (c *Conversation) Next(ctx context.Context) (*Reply, error) {
	path, body := "/chat/completions", c.openAI()
	if c.endpoint.Wire == schemas.WireAnthropic {
		path, body = "/v1/messages", c.anthropic()
	}
	q, err := c.request(ctx, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.endpoint.Client.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	defer io.Copy(io.Discard, io.LimitReader(resp.Body, longestReply)) //nolint:errcheck // at its end the proxy knows how it ended
	if resp.StatusCode != http.StatusOK {
		if resp.Header.Get("X-Should-Retry") == "false" {
			return nil, ErrFinal
		}
		return nil, errRefused
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		got, err := c.stream(resp.Body)
		if err != nil {
			return nil, err
		}
		return c.reply(got)
	}
	got, err := io.ReadAll(io.LimitReader(resp.Body, longestReply+1)) // of a server that does not stream
	switch {
	case err != nil:
		return nil, err
	case len(got) > longestReply:
		return nil, fmt.Errorf("the answer is longer than %d bytes", longestReply)
	}
	r, err := c.reply(got)
	if err == nil {
		c.heard(r.Text)
	}
	return r, err
}

// request is a request to the model.
func (c *Conversation) request(ctx context.Context, path string, body object) (*http.Request, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.URL+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "reconcile")
	if c.endpoint.Wire == schemas.WireAnthropic {
		q.Header.Set("X-Api-Key", c.endpoint.Token)
		q.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		q.Header.Set("Authorization", "Bearer "+c.endpoint.Token)
	}
	return q, nil
}

// reply reads an answer in one piece.
func (c *Conversation) reply(got []byte) (*Reply, error) {
	if c.endpoint.Wire == schemas.WireAnthropic {
		return c.readAnthropic(got)
	}
	return c.readOpenAI(got)
}

// heard reports a part of an answer.
func (c *Conversation) heard(text string) {
	if c.endpoint.Listener != nil {
		c.endpoint.Listener.Hear(text)
	}
}

// Result is the outcome of a call, for the model.
type Result struct {
	Call
	Text   string
	Failed bool
}

// Add adds the outcomes of all calls of the last answer.
func (c *Conversation) Add(results []Result) {
	if c.endpoint.Wire == schemas.WireAnthropic {
		var blocks []any
		for _, r := range results {
			blocks = append(blocks, object{"type": "tool_result", "tool_use_id": r.ID, "content": r.Text, "is_error": r.Failed})
		}
		c.history = append(c.history, object{"role": "user", "content": blocks})
		return
	}
	for _, r := range results {
		c.history = append(c.history, object{"role": "tool", "tool_call_id": r.ID, "content": r.Text})
	}
}

func (c *Conversation) anthropic() object {
	body := object{"model": c.endpoint.Model, "max_tokens": c.endpoint.MaxTokens, "messages": c.history, "stream": true}
	var tools []any
	for _, t := range c.tools {
		tools = append(tools, object{"name": t.Name, "description": t.Description, "input_schema": t.schema()})
	}
	if tools != nil {
		body["tools"] = tools
	}
	return body
}

func (c *Conversation) openAI() object {
	body := object{"model": c.endpoint.Model, "max_tokens": c.endpoint.MaxTokens, "messages": c.history, "stream": true}
	if c.endpoint.Completion {
		delete(body, "max_tokens")
		body["max_completion_tokens"] = c.endpoint.MaxTokens
	}
	var tools []any
	for _, t := range c.tools {
		tools = append(tools, object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.schema()}})
	}
	if tools != nil {
		body["tools"] = tools
	}
	return body
}

func (c *Conversation) readAnthropic(data []byte) (*Reply, error) {
	var a struct {
		Content    json.RawMessage `json:"content"`
		StopReason string          `json:"stop_reason"`
	}
	var blocks []struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("the answer is not what /v1/messages gives: %w", err)
	}
	if err := json.Unmarshal(a.Content, &blocks); err != nil {
		return nil, fmt.Errorf("the answer is not what /v1/messages gives: %w", err)
	}
	r := &Reply{Stop: a.StopReason}
	var text []string
	for _, b := range blocks {
		switch b.Type {
		case "text":
			text = append(text, b.Text)
		case "tool_use":
			r.Calls = append(r.Calls, Call{b.ID, b.Name, b.Input})
		}
	}
	if r.Text = strings.Join(text, "\n"); r.Stop == "stop_sequence" {
		r.Stop = stopEnd
	}
	c.history = append(c.history, object{"role": "assistant", "content": a.Content})
	return r, nil
}

// Reasons for the end of an answer.
const (
	stopEnd     = "end_turn"
	StopToolUse = "tool_use"
)

// finishReasons are OpenAI's, in the words of package turns.
var finishReasons = map[string]string{"stop": stopEnd, "length": "max_tokens", "tool_calls": StopToolUse, "content_filter": "refusal"}

func (c *Conversation) readOpenAI(data []byte) (*Reply, error) {
	var a struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
			Finish  string          `json:"finish_reason"`
		} `json:"choices"`
	}
	var m struct {
		Content *string `json:"content"`
		Refusal string  `json:"refusal"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("the answer is not what /chat/completions gives: %w", err)
	}
	if len(a.Choices) == 0 {
		return nil, errors.New("the answer of /chat/completions has no choices")
	}
	if err := json.Unmarshal(a.Choices[0].Message, &m); err != nil {
		return nil, fmt.Errorf("the answer is not what /chat/completions gives: %w", err)
	}
	r := &Reply{Stop: a.Choices[0].Finish}
	if word, ok := finishReasons[r.Stop]; ok {
		r.Stop = word
	}
	if m.Content != nil {
		r.Text = *m.Content
	}
	if m.Refusal != "" {
		r.Text, r.Stop = m.Refusal, "refusal"
	}
	for _, call := range m.Calls {
		r.Calls = append(r.Calls, Call{call.ID, call.Function.Name, json.RawMessage(call.Function.Arguments)})
	}
	if len(r.Calls) > 0 && r.Stop == stopEnd { // some servers say stop where they call tools
		r.Stop = StopToolUse
	}
	c.history = append(c.history, a.Choices[0].Message)
	return r, nil
}

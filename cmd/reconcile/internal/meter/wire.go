package meter

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas/shorten"
)

// wire is the format of a request and its answer.
type wire int

const (
	other     wire = iota // not a request to a model: it passes, and is not counted
	messages              // Anthropic
	responses             // OpenAI
	chat                  // OpenAI's Chat Completions, completions and embeddings, which many services speak
	generate              // Google
)

// wireOf recognizes a request by its method and path.
func wireOf(method, path string) wire {
	if method != http.MethodPost {
		return other
	}
	path = strings.TrimSuffix(path, "/")
	switch last := path[strings.LastIndexByte(path, '/')+1:]; {
	case last == "messages":
		return messages
	case last == "responses", strings.HasSuffix(path, "/responses/compact"):
		return responses
	case last == "completions", last == "embeddings":
		return chat
	case strings.HasSuffix(last, "enerateContent"):
		return generate
	}
	return other
}

// tokens are those of one request. Input includes tokens read from a cache and written to one.
type tokens struct {
	input, output, cached, written int64
	final                          bool // the service has said its last number
}

// usage is a count of tokens in any of the formats.
type usage struct {
	// Anthropic and OpenAI's responses
	Input   *int64 `json:"input_tokens"`
	Output  *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	// OpenAI's chat completions
	Prompt        *int64 `json:"prompt_tokens"`
	Completion    *int64 `json:"completion_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// answer is the part of an answer, or of an event of a streamed one, that is read here.
type answer struct {
	Type     string          `json:"type"`
	Model    string          `json:"model"`
	Usage    *usage          `json:"usage"`
	Message  json.RawMessage `json:"message"`  // of Anthropic's first event; elsewhere it may be a text
	Response json.RawMessage `json:"response"` // of OpenAI's events
	Version  string          `json:"modelVersion"`
	Metadata *struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolUse    int64 `json:"toolUsePromptTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// read adds the usage in a JSON value to that of a request. Values of other forms are ignored. streamed says that it is one
// event of several.
func (w wire) read(data []byte, streamed bool, known *exchange) {
	var a answer
	if json.Unmarshal(data, &a) != nil {
		return
	}
	known.model = cmp.Or(a.Model, a.Version, known.model)
	for _, inner := range []json.RawMessage{a.Message, a.Response} {
		var in answer
		if len(inner) == 0 || json.Unmarshal(inner, &in) != nil {
			continue
		}
		known.model = cmp.Or(in.Model, known.model)
		if in.Usage != nil {
			a.Usage = in.Usage
		}
		if a.Type == "response.failed" {
			a.Error = in.Error
		}
	}
	if a.Usage != nil {
		w.count(a.Usage, &known.tokens)
		known.final = known.final || !streamed || w != messages || a.Type == "message_delta"
	}
	if m := a.Metadata; m != nil && w == generate {
		known.tokens = tokens{input: m.Prompt + m.ToolUse, output: m.Candidates + m.Thoughts, cached: m.Cached, final: true}
	}
	if a.Type == "error" && len(a.Error) == 0 { // OpenAI's event, whose fields are not in an object of their own
		a.Error = data
	}
	if e := readError(a.Error); e != nil {
		known.failed = e
	}
	known.clamp()
}

// count reads a count. Events of one answer say the sum so far, and leave out unchanged counts.
func (w wire) count(u *usage, t *tokens) {
	set := func(to *int64, from *int64) {
		if from != nil {
			*to = *from
		}
	}
	switch w {
	case messages: // input_tokens is without the cache
		fresh := t.input - t.cached - t.written
		set(&fresh, u.Input)
		set(&t.cached, u.Read)
		set(&t.written, u.Written)
		t.input = fresh + t.cached + t.written
		set(&t.output, u.Output)
	case responses:
		set(&t.input, u.Input)
		set(&t.output, u.Output)
		t.cached = u.Details.Cached
	case chat:
		set(&t.input, u.Prompt)
		set(&t.output, u.Completion)
		t.cached = u.PromptDetails.Cached
	}
}

// most bounds a number of tokens that is believed.
const most = 1 << 40

// clamp makes numbers plausible that a service got wrong: none is negative, and no part is larger than the whole.
func (t *tokens) clamp() {
	for _, n := range []*int64{&t.input, &t.output} {
		*n = min(max(*n, 0), most)
	}
	t.cached = min(max(t.cached, 0), t.input)
	t.written = min(max(t.written, 0), t.input-t.cached)
}

// longestError bounds the message of an error, in bytes.
const longestError = 500

// readError reads an error of any of the formats; nil for none.
func readError(data json.RawMessage) *settle.WireError {
	var text string
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	if json.Unmarshal(data, &text) == nil {
		return &settle.WireError{Message: shorten.Bytes(text, longestError)}
	}
	var e struct {
		Type, Status, Message string
		Code                  json.RawMessage
		Details               []struct {
			RetryDelay string `json:"retryDelay"`
		}
	}
	_ = json.Unmarshal(data, &e) // a field of another form leaves the others
	var code string
	_ = json.Unmarshal(e.Code, &code)
	out := &settle.WireError{Kind: shorten.Bytes(cmp.Or(e.Type, code, e.Status), 100), Message: shorten.Bytes(e.Message, longestError)}
	for _, d := range e.Details {
		if d.RetryDelay != "" {
			out.RetryAfter = "in " + shorten.Bytes(d.RetryDelay, 20)
		}
	}
	return out
}

// refusal is an error in the service's own format.
func (w wire) refusal(status int, kind, message string) []byte {
	type m = map[string]any
	var v any
	switch w {
	case messages:
		v = m{"type": "error", "error": m{"type": kind, "message": message}}
	case generate:
		v = m{"error": m{"code": status, "message": message, "status": strings.ToUpper(kind)}}
	default:
		v = m{"error": m{"message": message, "type": kind, "code": kind, "param": nil}}
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return data
}

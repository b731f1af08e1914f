package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Codes of JSON-RPC errors.
const (
	codeMethodNotFound = -32601
	codeAuthRequired   = -32000
)

// message is the envelope of a JSON-RPC message. A request has a method and an id, a notification a method, an answer an id.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// isAnswer reports whether the message answers a request.
func (m *message) isAnswer() bool { return m.Method == "" && len(m.ID) > 0 }

// encode returns the message as a line.
func (m *message) encode() ([]byte, error) {
	b, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		*message
	}{"2.0", m})
	return append(b, '\n'), err
}

// decode parses a line. Answers to unknown requests are messages, too.
func decode(line []byte) (*message, error) {
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, err
	}
	if m.Method == "" && len(m.ID) == 0 && m.Error == nil {
		return nil, errors.New("neither a method nor an id")
	}
	return m, nil
}

// Error is an error that the agent answered with.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Details are the data of an error in addition to its code and message. Agents have different names for it.
type Details struct {
	Kind       string // rate_limit, usageLimitExceeded, …
	Status     int    // HTTP status of the model's service
	Message    string // a message that says more than "Internal error"
	RetryAfter string
}

// Details reads the data of the error.
func (e *Error) Details() Details {
	var d struct {
		ErrorKind  string          `json:"errorKind"`
		Codex      json.RawMessage `json:"codexErrorInfo"`
		Type       string          `json:"type"`
		Status     json.RawMessage `json:"status"`
		StatusCode json.RawMessage `json:"statusCode"`
		Message    string          `json:"message"`
		Details    string          `json:"details"`
		RetryAfter string          `json:"retryAfter"`
	}
	if !decodeLoosely(e.Data, &d) {
		return Details{Message: text(e.Data)}
	}
	return Details{Kind: firstOf(d.ErrorKind, nameIn(d.Codex), d.Type), Status: firstOf(number(d.Status), number(d.StatusCode)),
		Message: firstOf(d.Message, d.Details), RetryAfter: d.RetryAfter}
}

// nameIn returns a JSON string, or the first name of an object: {"rateLimit":{…}}.
func nameIn(raw json.RawMessage) string {
	if s := text(raw); s != "" {
		return s
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	t, _ := d.Token()
	s, _ := t.(string)
	return s
}

// text returns a JSON string, "" for any other value.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// number returns a JSON number that is an int, 0 for any other value.
func number(raw json.RawMessage) (n int) {
	if json.Unmarshal(raw, &n) != nil {
		return 0
	}
	return n
}

// decodeLoosely decodes an object into v; a field of an unexpected type stays empty. It reports whether raw is an object.
func decodeLoosely(raw json.RawMessage, v any) bool {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return false
	}
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(raw, v) // goes on after a wrong type
	return err == nil || errors.As(err, &wrong)
}

func firstOf[T comparable](values ...T) (none T) {
	for _, v := range values {
		if v != none {
			return v
		}
	}
	return none
}

// lines reads lines that have at most a number of bytes.
type lines struct {
	in      *bufio.Reader
	most    int
	buf     []byte
	skipped int // lines that were too long
}

// keptBuffer is the capacity from which a buffer is not kept for the next line.
const keptBuffer = 1 << 20

func newLines(r io.Reader, most int) *lines {
	return &lines{in: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next returns the next line that is not empty and not too long, without its end; valid until the next call. The rest after
// the last line end is a line, too.
func (l *lines) next() ([]byte, error) {
	for {
		line, whole, err := l.read()
		if line = bytes.TrimSpace(line); len(line) > 0 && whole {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// read reads one line; whole is false for one that is too long.
func (l *lines) read() (line []byte, whole bool, err error) {
	if l.buf = l.buf[:0]; cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if whole && len(l.buf)+len(part) > l.most {
			whole = false
			l.skipped++
			l.buf = l.buf[:0]
		}
		if whole {
			l.buf = append(l.buf, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.buf, whole, err
		}
	}
}

// oneLine makes a name that an agent sent fit for a count: one line of bounded length.
func oneLine(s string, most int) string {
	if s = strings.Join(strings.Fields(s), " "); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

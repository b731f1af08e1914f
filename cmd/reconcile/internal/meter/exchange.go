package meter

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"

	"reconcile.dev/reconcile/controllers/settle"
)

// exchange is one request to a model with the state of its answer.
type exchange struct {
	tokens
	wire   wire
	asked  string // the model that the request names
	model  string // the one that answered
	status int
	failed *settle.WireError
	// progress is called at the beginning of an answer, and after each event of a stream; nil: no one wants to know.
	progress func()

	streamed bool
	line     []byte // of a stream, without its end; or a whole answer
	long     bool   // line is longer than longestLine: the rest of it is skipped
	data     []byte // of the event that is being read
}

// longestLine bounds the kept part of a line of a stream, and of an answer that is not streamed. A longer one passes unread.
const longestLine = 32 << 20

// longestFailure bounds the read part of an answer that is an error.
const longestFailure = 64 << 10

// begin reads the head of the answer.
func (x *exchange) begin(r *http.Response) {
	x.status = r.StatusCode
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	x.streamed = kind == "text/event-stream"
	if x.status >= 400 {
		x.failed = &settle.WireError{}
	}
	x.report()
}

// report tells how far the answer is. One that is an error uses nothing.
func (x *exchange) report() {
	if x.progress != nil && x.status < 400 {
		x.progress()
	}
}

// Write reads a part of the answer's body. It never fails.
func (x *exchange) Write(b []byte) (int, error) {
	n := len(b)
	if !x.streamed {
		x.keep(b)
		return n, nil
	}
	for {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		x.keep(line)
		if !found {
			return n, nil
		}
		x.endLine()
		b = rest
	}
}

func (x *exchange) keep(b []byte) {
	longest := longestLine
	if x.status >= 400 {
		longest = longestFailure
	}
	if x.long = x.long || len(x.line)+len(b) > longest; !x.long {
		x.line = append(x.line, b...)
	}
}

// endLine reads a line of a stream. An empty one ends an event.
func (x *exchange) endLine() {
	line := bytes.TrimSuffix(x.line, []byte("\r"))
	switch data, ok := bytes.CutPrefix(line, []byte("data:")); {
	case x.long:
	case len(line) == 0:
		x.endEvent()
	case ok && len(x.data)+len(data) <= longestLine:
		if len(x.data) > 0 {
			x.data = append(x.data, '\n')
		}
		x.data = append(x.data, bytes.TrimPrefix(data, []byte(" "))...)
	}
	x.line, x.long = x.line[:0], false
}

func (x *exchange) endEvent() {
	if len(x.data) > 0 && x.data[0] == '{' {
		x.wire.read(x.data, true, x)
		x.report()
	}
	x.data = x.data[:0]
}

// end reads the rest when the answer is over. whole says that it was not cut off.
func (x *exchange) end(header http.Header, whole bool) {
	if x.streamed {
		x.endLine()
		x.endEvent()
	} else if !x.long {
		x.readWhole()
	}
	x.line, x.data = nil, nil
	if x.failed == nil && !whole && !x.final {
		x.failed = &settle.WireError{Kind: "connection", Message: "the connection was lost during the answer"}
	}
	if x.failed == nil {
		return
	}
	x.failed.Status = x.status
	if x.status < 400 {
		x.failed.Status = 0 // an error in the middle of an answer
	}
	if after := retryAfter(header); after != "" {
		x.failed.RetryAfter = after
	}
}

// readWhole reads an answer that is not streamed: an object, or a list of them as Google sends without alt=sse.
func (x *exchange) readWhole() {
	body := bytes.TrimSpace(x.line)
	var parts []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &parts) == nil {
		for _, p := range parts {
			x.wire.read(p, true, x)
		}
		return
	}
	x.wire.read(body, false, x)
	if x.status >= 400 && x.failed.Message == "" {
		x.failed.Message = http.StatusText(x.status)
	}
}

// retryAfter is the earliest time for another request to a service.
func retryAfter(h http.Header) string {
	if ms := h.Get("Retry-After-Ms"); ms != "" {
		return "in " + ms + " ms"
	}
	return h.Get("Retry-After")
}

// uncounted reports whether the model worked and its tokens are not known.
func (x *exchange) uncounted() bool {
	return !x.final && x.status < 400 && x.status > 0
}

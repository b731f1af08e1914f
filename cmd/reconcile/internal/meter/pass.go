package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
)

// longestRequest bounds the body of a request to a model, in bytes.
const longestRequest = 256 << 20

// serve passes a request on, and counts it.
func (e *Endpoint) serve(w http.ResponseWriter, r *http.Request, format wire) {
	if over := e.admitPost(r, format); over != "" {
		refuse(w, format, http.StatusPaymentRequired, overKind(format), fmt.Sprintf(
			"the budget of this run is used up: %s. reconcile sends no further request of it; end your turn", over))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	x := &exchange{wire: format}
	whole := false
	var header http.Header
	if format != other {
		x.progress = func() { e.note(x) }
		// The service has not failed if the agent gave up its request, or was ended.
		defer func() { x.end(header, whole || ctx.Err() != nil); e.settle(x) }()
	}
	out, err := e.outgoing(ctx, r, x)
	if err != nil {
		x.failed = &settle.WireError{Status: http.StatusRequestEntityTooLarge, Message: err.Error()}
		refuse(w, format, http.StatusRequestEntityTooLarge, "invalid_request_error", err.Error())
		return
	}
	resp, err := e.proxy.o.Transport.RoundTrip(out)
	if err != nil {
		text := e.hide(connectionText(err))
		if ctx.Err() == nil {
			x.failed = &settle.WireError{Kind: "connection", Message: text}
		}
		refuse(w, format, http.StatusBadGateway, "api_error", "no connection to the model's service: "+text)
		return
	}
	defer resp.Body.Close()
	header = e.header(resp.Header)
	x.begin(resp)
	whole = e.copyAnswer(w, resp, header, x)
}

// admitPost admits a request. What does not ask a model to work passes also when the budget is used up.
func (e *Endpoint) admitPost(r *http.Request, format wire) string {
	if r.Method != http.MethodPost {
		return ""
	}
	return e.admit(format)
}

// overKind is the type of the error for a budget that is used up: one after which no client tries again.
func overKind(format wire) string {
	switch format {
	case messages:
		return "billing_error"
	case generate:
		return "failed_precondition"
	}
	return "insufficient_quota"
}

// connectionText is why there was no connection, without the address, which is in the spec.
func connectionText(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the run has ended"
	}
	return err.Error()
}

// outgoing is the request to the service: the same one, with the key in the places of the token.
func (e *Endpoint) outgoing(ctx context.Context, r *http.Request, x *exchange) (*http.Request, error) {
	to := *e.upstream
	to.Path = e.upstream.Path + path.Clean("/"+r.URL.Path) // no .. leads out of the service's address
	to.RawPath = ""
	query := r.URL.Query()
	inQuery := query.Has(keyParameter) && strings.HasPrefix(query.Get(keyParameter), tokenPrefix)
	if inQuery {
		query.Del(keyParameter)
	}
	if to.RawQuery = r.URL.RawQuery; inQuery {
		to.RawQuery = query.Encode()
	}
	body, length := io.Reader(r.Body), r.ContentLength
	if x.wire != other {
		data, err := e.requestBody(r, x)
		if err != nil {
			return nil, err
		}
		body, length = bytes.NewReader(data), int64(len(data))
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, to.String(), body)
	if err != nil {
		return nil, errors.New("the request cannot be passed on")
	}
	out.ContentLength = length
	out.Header = r.Header.Clone()
	for _, name := range append(strings.Split(r.Header.Get("Connection"), ","), hopHeaders...) {
		out.Header.Del(strings.TrimSpace(name))
	}
	out.Header.Set("Accept-Encoding", "identity")
	e.setKey(out, r, inQuery)
	return out, nil
}

// hopHeaders belong to one connection.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Cookie", "X-Forwarded-For", "Forwarded"}

// setKey replaces the token by the key, in the headers that have it.
func (e *Endpoint) setKey(out, r *http.Request, inQuery bool) {
	for _, name := range keyHeaders {
		values := r.Header.Values(name)
		out.Header.Del(name)
		if len(values) == 0 || e.key == "" {
			continue
		}
		if bearer := strings.HasPrefix(strings.ToLower(values[0]), "bearer "); bearer || name == "Authorization" {
			out.Header.Set(name, "Bearer "+e.key)
		} else {
			out.Header.Set(name, e.key)
		}
	}
	if inQuery && e.key != "" {
		out.Header.Set("X-Goog-Api-Key", e.key)
	}
}

// requestBody reads the request to a model: which one is asked, and whether a streamed answer reports its usage. Chat Completions
// only do so where they are asked to.
func (e *Endpoint) requestBody(r *http.Request, x *exchange) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, longestRequest+1))
	switch {
	case err != nil:
		return nil, errors.New("the request was cut off")
	case len(data) > longestRequest:
		return nil, fmt.Errorf("the request is longer than %d bytes", longestRequest)
	}
	var q struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if x.wire == generate {
		x.asked, _, _ = strings.Cut(path.Base(r.URL.Path), ":")
	}
	if x.wire == generate || json.Unmarshal(data, &q) != nil {
		return data, nil
	}
	x.asked = q.Model
	if x.wire == chat && q.Stream && (q.Options == nil || !q.Options.Usage) {
		return askForUsage(data), nil
	}
	return data, nil
}

// askForUsage adds the option with which a streamed answer reports its usage.
func askForUsage(data []byte) []byte {
	var q map[string]json.RawMessage
	if json.Unmarshal(data, &q) != nil {
		return data
	}
	options := map[string]json.RawMessage{}
	_ = json.Unmarshal(q["stream_options"], &options)
	options["include_usage"] = json.RawMessage("true")
	var err error
	if q["stream_options"], err = json.Marshal(options); err != nil {
		return data
	}
	out, err := json.Marshal(q)
	if err != nil {
		return data
	}
	return out
}

// header is that of the answer, without what belongs to the connection and without the key.
func (e *Endpoint) header(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range append(hopHeaders, "Content-Length", "Set-Cookie") {
		out.Del(name)
	}
	for name, values := range out {
		for i, v := range values {
			values[i] = e.hide(v)
		}
		out[name] = values
	}
	return out
}

// copyAnswer passes the answer on as it arrives, without the key. It reports whether all of it came.
func (e *Endpoint) copyAnswer(w http.ResponseWriter, resp *http.Response, header http.Header, x *exchange) (whole bool) {
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	flush := http.NewResponseController(w)
	h := hider{secret: []byte(e.key)}
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		clean := h.next(buf[:n], err != nil)
		if x.wire != other {
			x.Write(clean) //nolint:errcheck // it never fails
		}
		_, gone := w.Write(clean)
		_ = flush.Flush()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				panic(http.ErrAbortHandler) // so that the client sees that it is cut off
			}
			return true
		}
		if gone != nil {
			return false
		}
	}
}

package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/schemas/shorten"
)

const (
	tries      = 5                // of a call, when GitHub fails or does not answer
	firstPause = time.Second      // before the second try; doubled before each further one
	tryTime    = 30 * time.Second // for one try, from the request's first byte to the response's last
	maxAnswer  = 64 << 20         // bytes: a hundred comments of the longest kind, each character escaped
)

// githubTransport sends requests to GitHub: one at a time, at the pace and within the limits that GitHub requires. It returns a
// successful response with its body read, or an error of this package.
type githubTransport struct {
	o       Options
	base    *url.URL
	graphql string
	cache   *responseCache
	limits  *limits
	turn    chan struct{} // holds one value during a call
	written time.Time     // the start of the last write; owned by the holder of turn
}

func newWire(o Options, base *url.URL, graphql string) *githubTransport {
	return &githubTransport{
		o: o, base: base, graphql: graphql,
		cache:  &responseCache{dir: o.Cache, whose: o.Token, now: o.Now},
		limits: newLimits(o.Cache, base.Host, o.Token, o.Now),
		turn:   make(chan struct{}, 1),
	}
}

// manner tells whether a call may be repeated, which its method does not.
type manner int

const (
	once   manner = iota // creates something with each call; the default for writes
	again                // idempotent
	reader               // changes nothing, though it is a POST
)

// callOptions is what a call's context passes to the wire. It contains the caller's context; the outer context does not end
// with it: go-github would replace every error by the context's, even one that reports a possible creation.
type callOptions struct {
	ctx    context.Context
	manner manner
}

type callOptionsKey struct{}

func asking(ctx context.Context) context.Context    { return with(ctx, once) }
func repeating(ctx context.Context) context.Context { return with(ctx, again) }
func reading(ctx context.Context) context.Context {
	return with(ctx.Value(callOptionsKey{}).(callOptions).ctx, reader)
}

func with(ctx context.Context, m manner) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), callOptionsKey{}, callOptions{ctx, m})
}

// RoundTrip implements http.RoundTripper, for go-github.
func (w *githubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := r.Context().Value(callOptionsKey{}).(callOptions)
	call, err := w.callOf(r)
	if err != nil {
		return nil, err
	}
	if call.reads() {
		a.manner = reader
	}
	if a.manner != reader {
		if w.o.Dry != nil {
			w.o.Dry(call)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
		if w.o.Token == "" {
			return nil, fmt.Errorf("%s %s: no token was given, and only reading works without: %w", call.Method, call.Path,
				ErrUnauthorized)
		}
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-a.ctx.Done():
		return nil, a.ctx.Err()
	}
	return w.retry(r.WithContext(a.ctx), call, a.manner)
}

// callOf reads a request as a Call.
func (w *githubTransport) callOf(r *http.Request) (Call, error) {
	c := Call{Method: r.Method, Path: "/" + strings.TrimPrefix(r.URL.RequestURI(), w.base.EscapedPath())}
	if r.URL.String() == w.graphql {
		c.Path = "/graphql"
	}
	if r.Body == nil {
		return c, nil
	}
	body, err := io.ReadAll(r.Body)
	c.Body = bytes.TrimSpace(body)
	return c, err
}

// retry retries a call until it succeeds, is refused, or has been tried often enough.
func (w *githubTransport) retry(r *http.Request, call Call, m manner) (*http.Response, error) {
	patience := w.o.MaxWait
	for try := 1; ; {
		if err := w.wait(r.Context(), call, m, &patience); err != nil {
			return nil, err
		}
		resp, err := w.attempt(r, call, m)
		var limited *Limited
		switch {
		case err == nil:
			return resp, nil
		case errors.As(err, &limited):
			w.limits.set(limited)
			continue // wait gives up when it is too long
		case errors.Is(err, ErrGone), errors.Is(err, ErrMoved):
			return nil, w.confirm(r, call, err)
		case !retriable(err) || try == tries || r.Context().Err() != nil:
			return nil, err
		}
		if err := w.o.Sleep(r.Context(), w.pause(try)); err != nil {
			return nil, err
		}
		try++
	}
}

// retriable reports whether a retry may succeed.
func retriable(err error) bool {
	var uncertain *Uncertain
	return (errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable)) && !errors.As(err, &uncertain)
}

// pause returns the time before the next try, between half of its bound and all of it.
func (w *githubTransport) pause(try int) time.Duration {
	bound := firstPause << (try - 1)
	return bound/2 + time.Duration(w.o.Rand()*float64(bound/2))
}

// wait waits for limits to end, up to patience, and for the pace of writes.
func (w *githubTransport) wait(ctx context.Context, call Call, m manner, patience *time.Duration) error {
	for {
		limited, rest := w.limits.left()
		if limited == nil {
			break
		}
		if rest > *patience {
			return fmt.Errorf("%s %s: %w", call.Method, call.Path, limited)
		}
		*patience -= rest
		if err := w.o.Sleep(ctx, rest); err != nil {
			return err
		}
	}
	if m == reader {
		return nil
	}
	if rest := min(w.o.Pace-w.o.Now().Sub(w.written), w.o.Pace); !w.written.IsZero() && rest > 0 {
		if err := w.o.Sleep(ctx, rest); err != nil {
			return err
		}
	}
	w.written = w.o.Now()
	return nil
}

// attempt sends a call once, and evaluates the response.
func (w *githubTransport) attempt(r *http.Request, call Call, m manner) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), tryTime)
	defer cancel()
	var sent atomic.Bool // possibly: once there is a connection, it is unknown how much was sent
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req := r.Clone(ctx)
	if call.Body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(call.Body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(call.Body))
	}
	w.setHeaders(req)
	known := w.cache.ask(req)
	resp, body, err := w.exchange(req)
	if err == nil {
		w.limits.see(resp)
		if resp, body = known.answer(resp, body); resp.StatusCode/100 == 2 {
			err = w.content(call, m, resp, body)
		} else {
			err = w.refusal(call, resp, body)
		}
	}
	if err != nil {
		if m == once && sent.Load() && unclear(err) {
			err = &Uncertain{Call: call, Err: err}
		}
		return nil, err
	}
	w.cache.keep(req, resp, body)
	resp.Body, resp.Request = io.NopCloser(bytes.NewReader(body)), r
	return resp, nil
}

// unclear reports whether the call may have succeeded despite the error.
func unclear(err error) bool {
	return errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// setHeaders sets the headers of every request. The token is sent only to the host of the API.
func (w *githubTransport) setHeaders(r *http.Request) {
	if w.o.Token != "" && r.URL.Host == w.base.Host {
		r.Header.Set("Authorization", "Bearer "+w.o.Token)
	}
}

// exchange sends a request and reads the whole response.
func (w *githubTransport) exchange(r *http.Request) (*http.Response, []byte, error) {
	resp, err := w.o.HTTP.RoundTrip(r)
	if err != nil {
		return nil, nil, w.lost(r, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, w.lost(r, err)
	case len(body) > maxAnswer:
		return nil, nil, fmt.Errorf("%s %s: the answer is longer than %d MiB: %w", r.Method, r.URL.Path, maxAnswer>>20, ErrInvalid)
	}
	// go-github would apply its own limits with its own clock; it does not for cached responses.
	resp.Header.Set("X-From-Cache", "1")
	return resp, body, nil
}

// lost returns the error of a request without an answer. If the caller cancelled, it is the context's.
func (w *githubTransport) lost(r *http.Request, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return fmt.Errorf("%s %s: %w (%v)", r.Method, r.URL.Path, ErrUnreachable, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call is a request, as shown to people and in journals; it contains no secret.
type Call struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`           // with its query, relative to the API's root: "/repos/octo/widgets/issues/42/comments"
	Body   json.RawMessage `json:"body,omitempty"` // nil: none
}

// longestBody is the maximum length of a body in String, in bytes.
const longestBody = 400

// String returns the call on one line: its method, path and body, shortened if it is long.
func (c Call) String() string {
	s := c.Method + " " + c.Path
	if len(c.Body) == 0 {
		return s
	}
	body := c.Body
	if len(body) > longestBody {
		return s + " " + shorten.Bytes(string(body), longestBody) + "…"
	}
	return s + " " + string(body)
}

// reads reports whether the call changes nothing on GitHub.
func (c Call) reads() bool { return c.Method == http.MethodGet || c.Method == http.MethodHead }

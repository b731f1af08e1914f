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
)

const (
	tries      = 5                // of a call, when GitHub fails or does not answer
	firstPause = time.Second      // before the second try; doubled before each further one
	tryTime    = 30 * time.Second // for one try, from the first byte of the request to the last one of the answer
	maxAnswer  = 64 << 20         // bytes: a hundred comments of the longest kind, each character escaped
)

// wire carries requests to GitHub: one at a time, at the pace and within the limits that GitHub asks for. What comes
// back from it is an answer that says yes, with its body read, or an error of this package.
type wire struct {
	o       Options
	base    *url.URL
	graphql string
	cache   *cache
	limits  *limits
	turn    chan struct{} // holds one value while a call is under way
	written time.Time     // the start of the last write; owned by whoever has the turn
}

func newWire(o Options, base *url.URL, graphql string) *wire {
	return &wire{
		o: o, base: base, graphql: graphql,
		cache:  &cache{dir: o.Cache, whose: o.Token, now: o.Now},
		limits: newLimits(o.Cache, base.Host, o.Token, o.Now),
		turn:   make(chan struct{}, 1),
	}
}

// manner says what a call's method does not: whether it may be done twice.
type manner int

const (
	once   manner = iota // creates something with each call; the default of writes
	again                // twice is as once
	reader               // changes nothing, though it is a POST
)

// asked is what a call's context says to the wire. The caller's own context travels inside, and the outer one does not
// end with it: go-github would replace every error by the context's, also one that says that something may have been
// created.
type asked struct {
	ctx    context.Context
	manner manner
}

type askedKey struct{}

func asking(ctx context.Context) context.Context    { return with(ctx, once) }
func repeating(ctx context.Context) context.Context { return with(ctx, again) }
func reading(ctx context.Context) context.Context {
	return with(ctx.Value(askedKey{}).(asked).ctx, reader)
}

func with(ctx context.Context, m manner) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), askedKey{}, asked{ctx, m})
}

// said returns an error of the wire without what others wrapped it in.
func said(err error) error {
	var outer *url.Error
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &outer):
		return outer.Err
	case errors.As(err, &typ):
		return fmt.Errorf("GitHub's answer is not of the form that it describes (%v): %w", err, ErrServer)
	}
	return err
}

// RoundTrip implements http.RoundTripper, for go-github.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	a := r.Context().Value(askedKey{}).(asked)
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
	return w.insist(r.WithContext(a.ctx), call, a.manner)
}

// callOf reads a request as a Call.
func (w *wire) callOf(r *http.Request) (Call, error) {
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

// insist tries a call until it succeeds, is refused, or has been tried often enough.
func (w *wire) insist(r *http.Request, call Call, m manner) (*http.Response, error) {
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
		case !fault(err) || try == tries || r.Context().Err() != nil:
			return nil, err
		}
		if err := w.o.Sleep(r.Context(), w.pause(try)); err != nil {
			return nil, err
		}
		try++
	}
}

// fault reports whether a failure may be gone at the next try.
func fault(err error) bool {
	var uncertain *Uncertain
	return (errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable)) && !errors.As(err, &uncertain)
}

// pause is the time before the try after the given one, from half of its bound to all of it.
func (w *wire) pause(try int) time.Duration {
	bound := firstPause << (try - 1)
	return bound/2 + time.Duration(w.o.Rand()*float64(bound/2))
}

// wait waits for limits to end, as long as there is patience, and for the turn of a write.
func (w *wire) wait(ctx context.Context, call Call, m manner, patience *time.Duration) error {
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

// attempt sends a call once, and judges the answer.
func (w *wire) attempt(r *http.Request, call Call, m manner) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), tryTime)
	defer cancel()
	var sent atomic.Bool // perhaps: from when there is a connection on, nobody can tell how far it came
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req := r.Clone(ctx)
	if call.Body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(call.Body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(call.Body))
	}
	w.dress(req)
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

// unclear reports whether what was sent may have been done, though the answer is an error.
func unclear(err error) bool {
	return errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// dress gives a request what every request has. The token goes to one host only, that of the API.
func (w *wire) dress(r *http.Request) {
	if w.o.Token != "" && r.URL.Host == w.base.Host {
		r.Header.Set("Authorization", "Bearer "+w.o.Token)
	}
}

// exchange sends a request and reads the answer to its end.
func (w *wire) exchange(r *http.Request) (*http.Response, []byte, error) {
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
	// go-github would keep limits of its own, and judge them by a clock of its own; not so for what it takes as cached.
	resp.Header.Set("X-From-Cache", "1")
	return resp, body, nil
}

// lost is the error of a request without an answer. When the caller gave up, it says so.
func (w *wire) lost(r *http.Request, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return fmt.Errorf("%s %s: %w (%v)", r.Method, r.URL.Path, ErrUnreachable, err)
}

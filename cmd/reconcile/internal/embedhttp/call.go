package embedhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// leastText is the length in bytes to which a refused text is cut at most.
const leastText = 512

// refusal is a response that rejects the texts permanently.
type refusal struct{ status, message string }

func (r *refusal) Error() string { return r.status + r.message }

// ask sends one request, with retries while they may help.
func (e *Embedder) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := schemas.Marshal(request{Model: e.Options.Model, Input: texts, Format: "float"})
	if err != nil {
		return nil, e.unavailable(err)
	}
	for try := 0; ; try++ {
		if err := e.wait(ctx, e.pace.turn(e.now())); err != nil {
			return nil, err
		}
		vectors, header, err := e.send(ctx, body, len(texts))
		var again *passing
		if err == nil || !errors.As(err, &again) {
			return vectors, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d, worth := waitAfter(try, header, e.now())
		if try+1 == tries || !worth {
			return nil, e.unavailable(err)
		}
		if err := e.wait(ctx, d); err != nil {
			return nil, err
		}
	}
}

// passing is a temporary failure.
type passing struct{ err error }

func (p *passing) Error() string { return p.err.Error() }
func (p *passing) Unwrap() error { return p.err }

// send sends one request, and reads the response.
func (e *Embedder) send(ctx context.Context, body []byte, texts int) ([][]float32, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Endpoint+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, nil, e.unavailable(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if e.UserAgent != "" {
		req.Header.Set("User-Agent", e.UserAgent)
	}
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, nil, &passing{e.plain(err)}
	}
	defer resp.Body.Close()
	limit := longestAnswer(texts, e.Dimensions)
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, resp.Header, e.judge(resp, data)
	case err != nil:
		return nil, resp.Header, &passing{e.plain(err)}
	case int64(len(data)) > limit:
		return nil, nil, e.unavailable(fmt.Errorf("it answers with more than %d bytes to %d texts", limit, texts))
	}
	vectors, err := decode(data, texts, e.Dimensions)
	if err != nil {
		return nil, nil, e.unavailable(err)
	}
	return vectors, nil, nil
}

// plain returns err without http's address prefix, and without the key.
func (e *Embedder) plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if e.Key != "" && strings.Contains(err.Error(), e.Key) {
		return errors.New(strings.ReplaceAll(err.Error(), e.Key, "***"))
	}
	return err
}

// takeSlot waits for a free slot; false if the context ends first.
func (e *Embedder) takeSlot(ctx context.Context) bool {
	select {
	case e.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	firstWait   = 500 * time.Millisecond // after the first failure; doubled after each further one
	longestWait = 30 * time.Second
	// longestSaid is the maximum wait that the endpoint may ask for; beyond it, search is lexical only.
	longestSaid = 2 * time.Minute
	tries       = 6
)

// pace spaces requests. The zero value does not.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time // when the next request may begin
}

// turn reserves the next request, and returns the time until then.
func (p *pace) turn(now time.Time) time.Duration {
	if p.every == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(p.every)
	return d
}

// waitAfter returns how long to wait after a failed try, counted from 0, and whether a retry is worth it. The endpoint's
// wait overrides the default.
func waitAfter(try int, h http.Header, now time.Time) (time.Duration, bool) {
	d := min(firstWait<<try, longestWait)
	after := h.Get("Retry-After")
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		d = max(d, time.Duration(n)*time.Second)
	} else if t, err := http.ParseTime(after); err == nil {
		if there, err := http.ParseTime(h.Get("Date")); err == nil {
			now = there // its time is by its own clock
		}
		d = max(d, t.Sub(now))
	}
	return d, d <= longestSaid
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package meter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/modeltest"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

const canary = "sk-canary-4f6ab1c09d"

// open opens an endpoint of a proxy of its own.
func open(t *testing.T, upstream string, budget *schemas.Budget) *Endpoint {
	t.Helper()
	p := New(Options{Prices: map[string]schemas.Price{"priced": {Input: 1, Output: 10}}})
	t.Cleanup(func() { p.Close() })
	return openOn(t, p, upstream, budget)
}

func openOn(t *testing.T, p *Proxy, upstream string, budget *schemas.Budget) *Endpoint {
	t.Helper()
	e, err := p.Open(Request{Upstream: upstream, Key: canary, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ask sends a request as an agent does, and returns the answer.
func ask(t *testing.T, e *Endpoint, f format, stream bool) (status int, body string) {
	t.Helper()
	resp, body := send(t, e, http.MethodPost, f.path(stream), fmt.Sprintf(`{"model":"priced","stream":%v,"n":1.50}`, stream), f.header, e.Token())
	return resp.StatusCode, body
}

func send(t *testing.T, e *Endpoint, method, path, body, header, token string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, e.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header == "Authorization" {
		token = "Bearer " + token
	}
	if header != "" {
		r.Header.Set(header, token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body) // what came before a connection was lost
	return resp, string(data)
}

// format is one that agents speak.
type format struct{ name, whole, streamed, header string }

func (f format) path(stream bool) string {
	if stream && f.streamed != "" {
		return f.streamed
	}
	return f.whole
}

var formats = []format{
	{"messages", "/v1/messages?beta=true", "", "X-Api-Key"},
	{"responses", "/responses", "", "Authorization"},
	{"chat", "/chat/completions", "", "Authorization"},
	{"generate", "/v1beta/models/priced:generateContent", "/v1beta/models/priced:streamGenerateContent?alt=sse", "X-Goog-Api-Key"},
}

// each runs a test for each format, streamed and not.
func each(t *testing.T, f func(t *testing.T, f format, stream bool)) {
	for _, format := range formats {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", format.name, stream), func(t *testing.T) { f(t, format, stream) })
		}
	}
}

func TestUsageIsCountedFromTheWire(t *testing.T) {
	each(t, func(t *testing.T, f format, stream bool) {
		written := int64(0)
		if f.name == "messages" {
			written = 100
		}
		s := modeltest.New(t, modeltest.Answer{Text: "one", Input: 1000, Cached: 300, Written: written, Output: 50},
			modeltest.Answer{Text: "two", Input: 2000, Output: 60})
		e := open(t, s.URL, nil)
		for range 2 {
			if status, body := ask(t, e, f, stream); status != 200 || !strings.Contains(body, "one") && !strings.Contains(body, "two") {
				t.Fatalf("%d %s", status, body)
			}
		}
		m := e.Read()
		want := schemas.Usage{Requests: 2, InputTokens: 3000, OutputTokens: 110, CachedInputTokens: 300, CacheWriteTokens: written, ContextUsed: 2000}
		if m.Usage != want || m.Model != "priced" || m.Failed != nil || m.Over != "" {
			t.Errorf("%+v", m)
		}
		if m.CostUSD == nil || *m.CostUSD < 0.004099 || *m.CostUSD > 0.004101 {
			t.Errorf("cost %v", m.CostUSD)
		}
		for _, r := range s.Requests() {
			if got := r.Header.Get(f.header); strings.TrimPrefix(got, "Bearer ") != canary || strings.Contains(fmt.Sprint(r.Header), e.Token()) {
				t.Errorf("the service got %v", r.Header)
			}
			if f.name != "chat" && f.name != "generate" && !strings.Contains(r.Body, `"n":1.50`) {
				t.Errorf("the request was changed: %s", r.Body)
			}
		}
	})
}

func TestUnknownIsNotZero(t *testing.T) {
	each(t, func(t *testing.T, f format, stream bool) {
		s := modeltest.New(t, modeltest.Answer{Text: "x", NoUsage: true}, modeltest.Answer{Text: "x", Input: 5, Output: 5, Model: "fake"})
		e := open(t, s.URL, nil)
		ask(t, e, f, stream)
		if m := e.Read(); m.CostUSD != nil || m.Usage != (schemas.Usage{Requests: 1, Uncounted: 1}) {
			t.Errorf("without numbers: %+v", m)
		}
	})
	s := modeltest.New(t, modeltest.Answer{Text: "x", Input: 5, Output: 5, Model: "fake"})
	e := open(t, s.URL, nil)
	send(t, e, "POST", "/v1/messages", `{"model":"fake"}`, "X-Api-Key", e.Token())
	if m := e.Read(); m.CostUSD != nil || m.Usage.InputTokens != 5 || m.Model != "fake" {
		t.Errorf("without a price: %+v", m)
	}
}

func TestErrorsOfTheService(t *testing.T) {
	each(t, func(t *testing.T, f format, stream bool) {
		s := modeltest.New(t, modeltest.Answer{Status: 429, Kind: "rate_limit_error", Message: "slow down, " + canary, RetryAfter: "30"},
			modeltest.Answer{Text: "half", Input: 10, Output: 9, CutOff: true}, modeltest.Answer{Text: "ok", Input: 1, Output: 1})
		e := open(t, s.URL, nil)
		status, body := ask(t, e, f, stream)
		want := settle.WireError{Status: 429, Kind: "rate_limit_error", Message: "slow down, ***", RetryAfter: "30"}
		if got := e.Read().Failed; status != 429 || got == nil || *got != want {
			t.Errorf("%d %s: %+v", status, body, got)
		}
		if strings.Contains(body, canary) {
			t.Errorf("the key came back: %s", body)
		}
		status, _ = ask(t, e, f, stream)
		if m := e.Read(); m.Failed == nil || m.Usage.Uncounted != uint1(status == 200) {
			t.Errorf("cut off: %d %+v", status, m)
		}
		ask(t, e, f, stream)
		if m := e.Read(); m.Failed != nil || m.Usage.Requests != 3 {
			t.Errorf("after a success: %+v", m)
		}
	})
}

func uint1(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestBudgetStops(t *testing.T) {
	budgets := map[string]*schemas.Budget{
		"2 of 2 requests":      {Requests: 2},
		"220 of 200 tokens":    {Tokens: 200},
		"$0.0004 of $0.0003":   {CostUSD: 0.0003},
		"220 of 201 tokens":    {Requests: 9, Tokens: 201},
		"$0.0004 of $0.0004":   {Tokens: 900, CostUSD: 0.0004},
		"never used up at all": nil,
	}
	each(t, func(t *testing.T, f format, stream bool) {
		for over, budget := range budgets {
			s := modeltest.New(t, modeltest.Answer{Text: "x", Input: 100, Output: 10})
			e := open(t, s.URL, budget)
			for i := range 2 {
				if status, body := ask(t, e, f, stream); status != 200 {
					t.Fatalf("%s: request %d: %d %s", over, i, status, body)
				}
			}
			status, body := ask(t, e, f, stream)
			if budget == nil {
				if status != 200 || e.Read().Over != "" {
					t.Errorf("without a budget: %d %s", status, body)
				}
				continue
			}
			if m := e.Read(); status != http.StatusPaymentRequired || m.Over != over || len(s.Requests()) != 2 || m.Usage.Requests != 2 {
				t.Errorf("%s: %d, %+v after %d requests", over, status, m, len(s.Requests()))
			}
			var said struct {
				Error struct{ Message string }
			}
			if json.Unmarshal([]byte(body), &said) != nil || !strings.Contains(said.Error.Message, over) {
				t.Errorf("%s: %s", over, body)
			}
		}
	})
}

// TestARunningRequestIsNotCut tests that a budget refuses the next request and lets the one that runs end.
func TestARunningRequestIsNotCut(t *testing.T) {
	gate := make(chan struct{})
	s := modeltest.New(t, modeltest.Answer{Text: "first", Input: 10, Output: 1, Wait: gate}, modeltest.Answer{Text: "second", Input: 10, Output: 1})
	e := open(t, s.URL, &schemas.Budget{Requests: 1})
	r, _ := http.NewRequest("POST", e.URL()+"/v1/messages", strings.NewReader(`{"model":"priced","stream":true}`))
	r.Header.Set("X-Api-Key", e.Token())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 20)
	if _, err := io.ReadFull(resp.Body, head); err != nil { // it is streamed: the beginning is here while the end waits
		t.Fatal(err)
	}
	if status, _ := ask(t, e, formats[0], true); status != http.StatusPaymentRequired {
		t.Errorf("the second request: %d", status)
	}
	close(gate)
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "message_delta") {
		t.Errorf("the first request was cut: %q, %v", rest, err)
	}
}

// TestARunningRequestCounts tests that what is known of a request is read before it has ended, and once.
func TestARunningRequestCounts(t *testing.T) {
	gate, told := make(chan struct{}), make(chan struct{}, 10)
	s := modeltest.New(t, modeltest.Answer{Text: "first", Input: 10, Output: 7, Wait: gate})
	e := open(t, s.URL, nil)
	e.changed = func() { told <- struct{}{} }
	r, _ := http.NewRequest("POST", e.URL()+"/v1/messages", strings.NewReader(`{"model":"priced","stream":true}`))
	r.Header.Set("X-Api-Key", e.Token())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-told // it is being answered
	<-told // the service says what it read
	if m := e.Read(); m.Usage.Requests != 1 || m.Usage.InputTokens != 10 || m.Usage.Uncounted != 1 || m.CostUSD == nil || *m.CostUSD == 0 {
		t.Errorf("while it is answered: %+v", m)
	}
	close(gate)
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	<-told // it has ended
	if m := e.Read(); m.Usage.Requests != 1 || m.Usage.InputTokens != 10 || m.Usage.OutputTokens != 7 || m.Usage.Uncounted != 0 {
		t.Errorf("afterwards: %+v", m)
	}
}

func TestOnlyTheRunGetsThrough(t *testing.T) {
	s := modeltest.New(t, modeltest.Answer{Text: "x", Input: 1, Output: 1})
	e := open(t, s.URL, nil)
	other := openOn(t, e.proxy, s.URL, nil)
	other.Close()
	client := func(change func(*http.Request)) int {
		r, _ := http.NewRequest("POST", e.URL()+"/v1/messages", strings.NewReader(`{}`))
		r.Header.Set("X-Api-Key", e.Token())
		change(r)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"the run":          {func(*http.Request) {}, 200},
		"localhost":        {func(r *http.Request) { r.Host = strings.Replace(r.URL.Host, "127.0.0.1", "localhost", 1) }, 200},
		"no token":         {func(r *http.Request) { r.Header.Del("X-Api-Key") }, 401},
		"another token":    {func(r *http.Request) { r.Header.Set("X-Api-Key", tokenPrefix+"AAAA") }, 401},
		"a run that ended": {func(r *http.Request) { r.Header.Set("X-Api-Key", other.Token()) }, 401},
		"the key":          {func(r *http.Request) { r.Header.Set("X-Api-Key", canary) }, 401},
		"another host":     {func(r *http.Request) { r.Host = "example.org" }, 403},
		"a page":           {func(r *http.Request) { r.Header.Set("Origin", "http://example.org") }, 403},
		"a browser":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 403},
		"a web socket":     {func(r *http.Request) { r.Header.Set("Upgrade", "websocket"); r.Header.Set("Connection", "Upgrade") }, 501},
	} {
		before := len(s.Requests())
		if got := client(c.change); got != c.want || (len(s.Requests()) > before) != (c.want == 200) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWhatIsUnknownPasses(t *testing.T) {
	s := modeltest.New(t, modeltest.Answer{Text: "x"})
	e := open(t, s.URL+"/base", nil)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v1/models", "/base/v1/models"}, {"POST", "/v1/messages/count_tokens", "/base/v1/messages/count_tokens"},
		{"GET", "/../../etc/passwd", "/base/etc/passwd"}, {"GET", "/%2e%2e/%2e%2e/x", "/base/x"}, {"HEAD", "/api/hello", "/base/api/hello"},
	} {
		resp, body := send(t, e, c.method, c.path, "", "X-Api-Key", e.Token())
		got := s.Requests()[len(s.Requests())-1]
		if resp.StatusCode != 200 || got.Path != c.want || strings.Contains(body, canary) || got.Header.Get("X-Api-Key") != canary {
			t.Errorf("%s %s: %d, %s: %s", c.method, c.path, resp.StatusCode, got.Path, body)
		}
	}
	if m := e.Read(); m.Usage != (schemas.Usage{}) {
		t.Errorf("it is counted: %+v", m)
	}
	resp, body := send(t, e, "GET", "/v1/models?key="+e.Token()+"&a=b", "", "", "")
	if last := s.Requests()[len(s.Requests())-1]; resp.StatusCode != 200 || last.Query != "a=b" || last.Header.Get("X-Goog-Api-Key") != canary {
		t.Errorf("a key in the query: %d %s: %+v", resp.StatusCode, body, last)
	}
}

func TestConcurrentRunsAreApart(t *testing.T) {
	s := modeltest.New(t, modeltest.Answer{Text: "x", Input: 10, Output: 1})
	p := New(Options{})
	defer p.Close()
	const runs, each = 8, 20
	endpoints := make([]*Endpoint, runs)
	var all sync.WaitGroup
	for i := range endpoints {
		endpoints[i] = openOn(t, p, s.URL, &schemas.Budget{Requests: int64(i + 1)})
		all.Go(func() {
			for range each {
				ask(t, endpoints[i], formats[i%len(formats)], i%2 == 0)
			}
		})
	}
	all.Wait()
	for i, e := range endpoints {
		if u := e.Read().Usage; u.Requests != int64(i+1) || u.InputTokens != int64(10*(i+1)) {
			t.Errorf("run %d used %+v", i, u)
		}
	}
}

func TestNoConnection(t *testing.T) {
	e := open(t, "http://127.0.0.1:1", nil)
	status, body := ask(t, e, formats[0], false)
	if m := e.Read(); status != http.StatusBadGateway || m.Failed == nil || m.Failed.Kind != "connection" || m.Usage.Uncounted != 0 {
		t.Errorf("%d %s: %+v", status, body, m)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	s := modeltest.New(t, modeltest.Answer{Text: "x", Wait: make(chan struct{})})
	e := open(t, s.URL, nil)
	r, _ := http.NewRequest("POST", e.URL()+"/v1/messages", strings.NewReader(`{"stream":true}`))
	r.Header.Set("X-Api-Key", e.Token())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the request went on")
	}
}

// TestKeysAreHiddenInStreams tests the removal of a key that arrives in pieces.
func TestKeysAreHiddenInStreams(t *testing.T) {
	text := "a" + canary + "b" + canary[:5] + "c" + canary + canary + canary[:len(canary)-1]
	want := strings.ReplaceAll(text, canary, hidden)
	for size := 1; size <= len(text); size++ {
		h, got := hider{secret: []byte(canary)}, ""
		for at := 0; at < len(text); at += size {
			end := min(at+size, len(text))
			got += string(h.next(bytes.Clone([]byte(text[at:end])), end == len(text)))
		}
		if got != want {
			t.Fatalf("in pieces of %d: %q", size, got)
		}
	}
}

func TestKeysAreHiddenInHeaders(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Key", "of "+r.Header.Get("X-Api-Key"))
	}))
	defer s.Close()
	e := open(t, s.URL, nil)
	resp, _ := send(t, e, "GET", "/v1/models", "", "X-Api-Key", e.Token())
	if got := resp.Header.Get("X-Request-Key"); got != "of "+hidden {
		t.Errorf("the header is %q", got)
	}
}

package embedhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/vectors/embed"
)

const dims = 4

// endpoint is a real server. answer nil answers well; a fault comes instead of the nth answers, from 0.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	keys     []string
	fault    func(n int, r request, w http.ResponseWriter) bool // true when it answered
}

func serve(t *testing.T, fault func(n int, r request, w http.ResponseWriter) bool) *endpoint {
	t.Helper()
	e := &endpoint{fault: fault}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(w http.ResponseWriter, req *http.Request) {
	var r request
	if err := json.NewDecoder(req.Body).Decode(&r); err != nil || req.URL.Path != "/v1/embeddings" || req.Method != "POST" {
		http.Error(w, "what?", http.StatusTeapot)
		return
	}
	e.mu.Lock()
	n := len(e.requests)
	e.requests = append(e.requests, r)
	e.keys = append(e.keys, req.Header.Get("Authorization"))
	e.mu.Unlock()
	if e.fault != nil && e.fault(n, r, w) {
		return
	}
	var out answer
	for i := range slices.Backward(r.Input) { // an order of its own
		v, _ := json.Marshal(raw(r.Input[i]))
		out.Data = append(out.Data, struct {
			Index     int             `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		}{i, v})
	}
	_ = json.NewEncoder(w).Encode(out)
}

// raw is the vector that the endpoint makes of a text: of any length but 1.
func raw(text string) []float32 {
	v := make([]float32, dims)
	for i, b := range []byte(text) {
		v[i%dims] += float32(b)
	}
	return v
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.requests)
}

// clock stands in for the time: waiting only moves it.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	waits []time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	if d > 0 {
		c.waits = append(c.waits, d)
	}
	return ctx.Err()
}

func (e *endpoint) embedder(t *testing.T, change func(*Options)) (*Embedder, *clock) {
	t.Helper()
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	o := Options{Endpoint: e.URL + "/v1/", Model: "m", Dimensions: dims, now: c.now, wait: c.wait}
	if change != nil {
		change(&o)
	}
	out, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return out, c
}

// check wants the vectors of these texts.
func check(t *testing.T, texts []string, got [][]float32) {
	t.Helper()
	for i, text := range texts {
		want := raw(text)
		if embed.Blank(text) {
			want = embed.Nothing(dims)
		}
		if err := embed.Unit(want); err != nil || !slices.Equal(got[i], want) {
			t.Errorf("text %d, %q: %v, want %v (%v)", i, shorten.Bytes(text, 20), got[i], want, err)
		}
	}
}

func TestEmbedInBatches(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	e, _ := server.embedder(t, func(o *Options) { o.Batch = 3; o.Key = "sk-1" })
	texts := []string{"a", "bb", "", "ccc", "a", " \n", "d<&>", "e", "ffffff", "bb", "g"}
	got, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	check(t, texts, got)
	asked := 0
	for i, r := range server.requests {
		asked += len(r.Input)
		if len(r.Input) > 3 || r.Model != "m" || server.keys[i] != "Bearer sk-1" {
			t.Errorf("request %v with key %q", r, server.keys[i])
		}
	}
	if asked != 7 {
		t.Errorf("asked for %d texts, want 7: each once, and none that is blank", asked)
	}
	got[0][0] = 9
	if got[4][0] == 9 {
		t.Error("two places share a vector")
	}
}

func TestPassingFaults(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
		}
	}
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data": [`)
	}
	hang := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		faults []func(http.ResponseWriter)
		waits  string
	}{
		"once":            {[]func(http.ResponseWriter){status(500)}, "[500ms]"},
		"growing":         {[]func(http.ResponseWriter){status(503), status(502), hang, cut}, "[500ms 1s 2s 4s]"},
		"said in seconds": {[]func(http.ResponseWriter){status(429, "Retry-After", "7")}, "[7s]"},
		"said too short":  {[]func(http.ResponseWriter){status(429, "Retry-After", "0")}, "[500ms]"},
		"said as a date":  {[]func(http.ResponseWriter){later}, "[20s]"},
		"said wrongly":    {[]func(http.ResponseWriter){status(429, "Retry-After", "soon")}, "[500ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(n int, _ request, w http.ResponseWriter) bool {
				if n < len(c.faults) {
					c.faults[n](w)
				}
				return n < len(c.faults)
			})
			e, clock := server.embedder(t, nil)
			got, err := e.Embed(t.Context(), []string{"text"})
			if err != nil {
				t.Fatal(err)
			}
			check(t, []string{"text"}, got)
			if waits := fmt.Sprint(clock.waits); waits != c.waits {
				t.Errorf("waited %s, want %s", waits, c.waits)
			}
		})
	}
}

// later answers that it is over in 20 seconds, by a clock of its own.
func later(w http.ResponseWriter) {
	w.Header().Set("Date", "Sun, 01 Feb 2026 10:00:00 GMT")
	w.Header().Set("Retry-After", "Sun, 01 Feb 2026 10:00:20 GMT")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// TestLastingFaults: what lasts is told after as many requests as can help, as ErrUnavailable, and without the key.
func TestLastingFaults(t *testing.T) {
	t.Parallel()
	const key = "sk-very-secret"
	say := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	data := func(vectors string) func(http.ResponseWriter) { return say(200, `{"data": [`+vectors+`]}`) }
	vector := func(numbers string) func(http.ResponseWriter) {
		return data(`{"index": 0, "embedding": [` + numbers + `]}`)
	}
	for name, c := range map[string]struct {
		answer   func(http.ResponseWriter)
		requests int
		want     string
	}{
		"server":      {say(500, `{"error": {"message": "broken by `+key+`"}}`), tries, "500 Internal Server Error: broken by ***"},
		"wants long":  {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "900"); w.WriteHeader(429) }, 1, "429"},
		"key":         {say(401, `{"error": {"message": "bad key `+key+`"}}`), 1, "apiKeyEnv"},
		"model":       {say(404, `{"error": "model \"m\" not found, try pulling it\u0007 first"}`), 1, `try pulling it first; look at`},
		"refused":     {say(400, `{"message": "no\nsuch thing"}`), 1, "400 Bad Request: no such thing"},
		"teapot":      {say(418, "<html>"), 1, "418"},
		"no JSON":     {say(200, "<html>"), 1, "not what /embeddings gives"},
		"none":        {data(""), 1, "0 vectors to 1 texts"},
		"two":         {data(`{"index":0,"embedding":[1,2,3,4]},{"index":0,"embedding":[1,2,3,4]}`), 1, "2 vectors to 1 texts"},
		"index":       {data(`{"index":1,"embedding":[1,2,3,4]}`), 1, "no vector, or two"},
		"negative":    {data(`{"index":-1,"embedding":[1,2,3,4]}`), 1, "no vector, or two"},
		"dimensions":  {vector("1, 2, 3"), 1, "write dimensions: 3"},
		"empty":       {vector(""), 1, "have 1 dimensions"},
		"null":        {vector("1, null, 3, 4"), 1, "no finite number"},
		"text":        {vector(`1, "2", 3, 4`), 1, "no finite number"},
		"NaN":         {vector("1, NaN, 3, 4"), 1, "not what /embeddings gives"},
		"infinite":    {vector("1, 1e39, 3, 4"), 1, "no finite number"},
		"zero":        {vector("0, 0, 0, -0"), 1, "no direction"},
		"no list":     {data(`{"index":0,"embedding":"AAAA"}`), 1, "no list of numbers"},
		"no vector":   {data(`{"index":0}`), 1, "no list of numbers"},
		"endless":     {endless, 1, "more than"},
		"endless bad": {func(w http.ResponseWriter) { w.WriteHeader(403); endless(w) }, 1, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(_ int, _ request, w http.ResponseWriter) bool { c.answer(w); return true })
			e, _ := server.embedder(t, func(o *Options) { o.Key = key })
			got, err := e.Embed(t.Context(), []string{"text"})
			if got != nil || !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Fatalf("%v, %v; want an error with %q", got, err, c.want)
			}
			if strings.Contains(err.Error(), key) || strings.ContainsAny(err.Error(), "\n\a") || len(err.Error()) > 600 {
				t.Errorf("the error must be one line without the key: %q", err)
			}
			if n := server.count(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

func endless(w http.ResponseWriter) {
	for {
		if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
			return
		}
	}
}

func TestNothingIsSentElsewhere(t *testing.T) {
	t.Parallel()
	other := serve(t, nil)
	server := serve(t, func(_ int, _ request, w http.ResponseWriter) bool {
		w.Header().Set("Location", other.URL+"/v1/embeddings?secret=1")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	e, _ := server.embedder(t, func(o *Options) { o.Key = "k" })
	_, err := e.Embed(t.Context(), []string{"text"})
	if !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "it redirects to "+other.URL+", where") {
		t.Errorf("got %v", err)
	}
	if server.count() != 1 || other.count() != 0 {
		t.Errorf("%d requests to the endpoint, %d elsewhere; want 1 and 0", server.count(), other.count())
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	e, clock := server.embedder(t, nil)
	server.Close()
	_, err := e.Embed(t.Context(), []string{"text"})
	if !errors.Is(err, embed.ErrUnavailable) || len(clock.waits) != tries-1 {
		t.Errorf("%v after waits of %v", err, clock.waits)
	}
}

// TestRefusedTextsAreCut: the endpoint takes no batch of more than two, and no text of more than 1000 bytes.
func TestRefusedTextsAreCut(t *testing.T) {
	t.Parallel()
	server := serve(t, func(_ int, r request, w http.ResponseWriter) bool {
		long := slices.ContainsFunc(r.Input, func(s string) bool { return len(s) > 1000 })
		if long || len(r.Input) > 2 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		return long || len(r.Input) > 2
	})
	e, _ := server.embedder(t, nil)
	long := strings.Repeat("ä", 1900)
	got, err := e.Embed(t.Context(), []string{"a", "b", long, "c", "d"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, []string{"a", "b", long[:950], "c", "d"}, got)
}

func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	e, clock := server.embedder(t, func(o *Options) { o.RequestsPerMinute = 30; o.Batch = 1; o.Parallel = 1 })
	begin := clock.now()
	if _, err := e.Embed(t.Context(), []string{"a", "b", "c", "d"}); err != nil {
		t.Fatal(err)
	}
	if d := clock.now().Sub(begin); d != 6*time.Second {
		t.Errorf("four requests took %v, want 6s: one each two seconds", d)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	server := serve(t, func(int, request, http.ResponseWriter) bool {
		mu.Lock()
		defer mu.Unlock()
		now++
		most = max(most, now)
		return false
	})
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		mu.Lock()
		defer mu.Unlock()
		now--
	})
	e, _ := server.embedder(t, func(o *Options) { o.Batch = 1; o.Parallel = 2 })
	texts := strings.Split(strings.Repeat("x y z ", 20), " ")
	for i := range texts {
		texts[i] += fmt.Sprint(i)
	}
	got, err := e.Embed(t.Context(), texts)
	if err != nil || most > 2 {
		t.Fatalf("%d requests at once, want 2 at most; %v", most, err)
	}
	check(t, texts, got)
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := serve(t, func(_ int, _ request, w http.ResponseWriter) bool {
		cancel()
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	e, _ := server.embedder(t, nil)
	_, err := e.Embed(ctx, []string{"text"})
	if !errors.Is(err, context.Canceled) || errors.Is(err, embed.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if server.count() != 1 {
		t.Errorf("%d requests", server.count())
	}
}

// Whoever waits for one text is told in time that there is no vector of it; a batch is waited for.
func TestPatience(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	e := serve(t, func(_ int, r request, _ http.ResponseWriter) bool {
		if len(r.Input) == 1 {
			<-over
		}
		return len(r.Input) == 1
	})
	defer close(over) // before the server, which waits for its handlers
	em, _ := e.embedder(t, func(o *Options) { o.Patience = time.Millisecond })
	if _, err := em.Embed(t.Context(), []string{"query"}); !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "within 1ms") {
		t.Errorf("an endpoint that hangs: %v", err)
	}
	texts := []string{"one", "two"}
	got, err := em.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	check(t, texts, got)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Options{Endpoint: "https://api.example.org/v1", Model: "m", Dimensions: 768}
	for want, change := range map[string]func(*Options){
		"":                 func(*Options) {},
		"index.endpoint":   func(o *Options) { o.Endpoint = "http://api.example.org/v1" },
		"index.model":      func(o *Options) { o.Model = "" },
		"index.dimensions": func(o *Options) { o.Dimensions = embed.MaxDimensions + 1 },
		"index.apiKeyEnv":  func(o *Options) { o.Key = "a\r\nHost: b" },
	} {
		o := good
		change(&o)
		if _, err := New(o); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestModelSaysWhatChangesVectors(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range []Options{
		{Endpoint: "https://a.example.org/v1", Model: "m", Dimensions: 4},
		{Endpoint: "https://b.example.org/v1", Model: "m", Dimensions: 4},
		{Endpoint: "https://a.example.org/v1", Model: "n", Dimensions: 4},
		{Endpoint: "https://a.example.org/v1", Model: "m", Dimensions: 5},
		{Endpoint: "https://a.example.org/v1/", Model: "m", Dimensions: 4, Key: "k", Batch: 7}, // as the first
	} {
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		seen[e.Model()] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d models, want 4: %v", len(seen), seen)
	}
}

func TestDecodeVectorLengths(t *testing.T) {
	t.Parallel()
	v, err := decodeVector([]byte(" [3e20, -4e20] "), 2)
	if err != nil || math.Abs(float64(v[0])-0.6) > 1e-7 || math.Abs(float64(v[1])+0.8) > 1e-7 {
		t.Errorf("%v, %v", v, err)
	}
}

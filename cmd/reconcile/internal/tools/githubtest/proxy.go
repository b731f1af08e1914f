package githubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is a line of the journal of requests.
type Request struct {
	Method, Path string // with the query
	Body         string
	Conditional  bool // with the header If-None-Match
	Status       int  // of the answer; 0: no answer
	Done         bool // the emulator received it
}

// Reads reports whether the method of the request is GET, which only reads.
func (r Request) Reads() bool { return r.Method == http.MethodGet }

// Fault is a fault to inject into a request. The zero value drops the request before it has an effect.
type Fault struct {
	After  bool        // forward the request first
	Status int         // of the answer; 0: cut the connection
	Header http.Header // of the answer
	Body   string      // of the answer; "": a message in GitHub's form
	Half   bool        // cut the connection in the middle of the answer; with After and no Status, of the real one
}

// plan is a fault that waits for requests.
type plan struct {
	match func(method, path string) bool
	times int
	fault Fault
}

// proxy stands between a client and the emulator.
type proxy struct {
	emulator *emulator
	api      *api

	mu         sync.Mutex
	under      int // requests in progress
	journal    []Request
	plans      []*plan
	violations []string
	reactions  map[int64][]reaction
	last       int64 // id of the last reaction

	writes      int       // how often something was written
	collected   []comment // those on all issues, as they were after collectedAt writes; nil: never collected
	collectedAt int
}

// Fail makes the next times requests with this method ("": any) and a path that contains part fail.
func (r *Rig) Fail(times int, method, part string, f Fault) {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	match := func(m, p string) bool { return (method == "" || m == method) && strings.Contains(p, part) }
	r.proxy.plans = append(r.proxy.plans, &plan{match: match, times: times, fault: f})
}

// Heal clears the plans of faults of the rig's proxy that still wait.
func (r *Rig) Heal() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.plans = nil
}

// Journal returns the page of requests in the journal of the rig's proxy, and begins a new one.
func (r *Rig) Journal() []Request {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	page := r.proxy.journal
	r.proxy.journal = nil
	return page
}

// Violations returns the violations of the API's description by requests to the rig's proxy, for people.
func (r *Rig) Violations() []string {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return slices.Clone(r.proxy.violations)
}

// answer is what goes back to the client.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	path := r.URL.RequestURI()
	fault := p.begin(r, path, body)
	entry := Request{Method: r.Method, Path: path, Body: string(body), Conditional: r.Header.Get("If-None-Match") != ""}
	var a answer
	if fault == nil || fault.After {
		a = p.pass(r, body)
		entry.Done = true
	}
	if fault != nil && (fault.Status != 0 || !fault.Half) {
		a = fault.answer()
	}
	entry.Status = a.status
	p.end(entry)
	if a.status == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	a.write(w, fault != nil && fault.Half)
}

// begin records the start of a request, and returns the fault to inject, if any.
func (p *proxy) begin(r *http.Request, path string, body []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under++; p.under > 1 {
		p.violations = append(p.violations, r.Method+" "+path+" was sent while another request was under way")
	}
	for _, v := range p.api.check(r.Method, r.URL, body) {
		p.violations = append(p.violations, fmt.Sprintf("%s %s: %s", r.Method, path, v))
	}
	if r.Header.Get("User-Agent") == "" {
		p.violations = append(p.violations, r.Method+" "+path+" has no User-Agent, without which GitHub refuses it")
	}
	for _, plan := range p.plans {
		if plan.times > 0 && plan.match(r.Method, path) {
			plan.times--
			return &plan.fault
		}
	}
	return nil
}

func (p *proxy) end(entry Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
	p.journal = append(p.journal, entry)
}

func (f *Fault) answer() answer {
	a := answer{status: f.Status, header: f.Header.Clone(), body: []byte(f.Body)}
	if f.Status == 0 {
		return answer{}
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	if f.Body == "" {
		a = complaint(f.Status, http.StatusText(f.Status), a.header)
	}
	return a
}

// complaint is an answer in GitHub's form that says no.
func complaint(status int, message string, h http.Header) answer {
	body, err := json.Marshal(map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
	if err != nil {
		panic(err) // strings always marshal
	}
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	return answer{status, h, body}
}

func (a answer) write(w http.ResponseWriter, half bool) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if half {
		_, _ = w.Write(a.body[:len(a.body)/2])
		panic(http.ErrAbortHandler)
	}
	if a.status != http.StatusNotModified && a.status != http.StatusNoContent {
		_, _ = w.Write(a.body)
	}
}

// pass forwards the request.
func (p *proxy) pass(r *http.Request, body []byte) answer {
	login, known := p.who(r)
	if !known {
		return complaint(http.StatusUnauthorized, "Bad credentials", nil)
	}
	if r.URL.Path == "/graphql" {
		return p.graphql(login, body)
	}
	if a, ours := p.reactionsCall(login, r, body); ours {
		return a
	}
	a, err := p.answer(r, body)
	if err != nil {
		return complaint(http.StatusBadGateway, err.Error(), nil)
	}
	if r.Method == http.MethodGet && a.status == http.StatusOK {
		a.body = role(r, since(r, a.body))
		a = condition(r, a)
	}
	return a
}

// answer asks the emulator, or for it.
func (p *proxy) answer(r *http.Request, body []byte) (answer, error) {
	if repo, all := allComments(r); all {
		return p.comments(r, repo)
	}
	if r.Method != http.MethodGet {
		defer p.wrote()
	}
	return p.forward(r, body)
}

// who returns the account of a request's token; "" without one.
func (p *proxy) who(r *http.Request) (login string, known bool) {
	token := tokenOf(r)
	if token == "" {
		return "", true
	}
	for _, login := range accounts {
		if token == Token(login) {
			return login, true
		}
	}
	return "", false
}

// tokenOf is the token of a request, "" if it has none.
func tokenOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// forward asks the emulator.
func (p *proxy) forward(r *http.Request, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, p.emulator.url.String()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, name := range []string{"Content-Type", "Accept", "User-Agent"} {
		req.Header[name] = r.Header[name]
	}
	if token := tokenOf(r); token != "" {
		req.Header.Set("Authorization", "Bearer "+p.emulator.token(token))
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding"} {
		resp.Header.Del(name)
	}
	return answer{resp.StatusCode, resp.Header, data}, err
}

// condition gives an answer its ETag, or says that the one that is known still holds. Then it says nothing else: not even
// which pages there are.
func condition(r *http.Request, a answer) answer {
	etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(a.body))
	if r.Header.Get("If-None-Match") == etag {
		return answer{status: http.StatusNotModified, header: http.Header{"Etag": {etag}}}
	}
	a.header.Set("ETag", etag)
	return a
}

// role says what a collaborator may do in the words that GitHub answers with; the emulator takes those of the request.
func role(r *http.Request, body []byte) []byte {
	if !strings.HasSuffix(r.URL.Path, "/permission") {
		return body
	}
	words := strings.NewReplacer(`"permission":"push"`, `"permission":"write"`, `"permission":"pull"`, `"permission":"read"`)
	return []byte(words.Replace(string(body)))
}

// since leaves out comments that are older than was asked for, which the emulator gives for single issues.
func since(r *http.Request, body []byte) []byte {
	from, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	var all []json.RawMessage
	if err != nil || !strings.HasSuffix(r.URL.Path, "/comments") || json.Unmarshal(body, &all) != nil {
		return body
	}
	kept := slices.DeleteFunc(all, func(c json.RawMessage) bool {
		var times struct {
			Updated time.Time `json:"updated_at"`
		}
		return json.Unmarshal(c, &times) == nil && times.Updated.Before(from)
	})
	out, err := json.Marshal(kept)
	if err != nil {
		return body
	}
	return out
}

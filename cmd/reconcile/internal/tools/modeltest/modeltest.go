// Package modeltest is a service of models for tests: it speaks the formats of Anthropic, OpenAI and Google, streamed and not,
// plays given answers, and has the faults of real services.
package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Answer is what the service answers to one request to a model.
type Answer struct {
	Text string
	Tool string         // the tool to call; "": none
	Args map[string]any // of the call
	Stop string         // the reason of the end in the service's words; default: that of a complete answer
	// Tokens that are claimed. Input includes Cached and Written.
	Input, Output, Cached, Written int64
	NoUsage                        bool // says nothing about tokens
	Model                          string
	id                             int // of the request, unique
	// Faults.
	Status        int // an error in place of the answer
	Kind, Message string
	RetryAfter    string
	NoRetry       bool            // the service wants no other attempt
	CutOff        bool            // the connection ends in the middle
	Hangs         bool            // the answer never ends, but its stream has begun
	Wait          <-chan struct{} // the answer waits for its end, in the middle of a stream
}

// Request is a request that the service got.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
}

// Server is a running service.
type Server struct {
	URL string

	mu       sync.Mutex
	answers  []Answer                 // in the order of the requests; the last one repeats
	decide   func(body string) Answer // in place of answers
	requests []Request
	waiting  chan struct{} // has one for each answer that began to wait
	each     func() (cut bool)
}

// OnEvent has the service call f after each event of a streamed answer; the connection ends there if it returns true. It is
// called before the first request.
func (s *Server) OnEvent(f func() (cut bool)) { s.each = f }

// New starts a service that plays answers. It ends with the test.
func New(t testing.TB, answers ...Answer) *Server {
	s, end := Start(answers...)
	t.Cleanup(end)
	return s
}

// Start starts a service that plays answers, until end is called.
func Start(answers ...Answer) (s *Server, end func()) {
	return start(&Server{answers: answers})
}

// StartDeciding starts a service that answers by the body of each request, until end is called. It calls decide for one request at
// a time.
func StartDeciding(decide func(body string) Answer) (s *Server, end func()) {
	return start(&Server{decide: decide})
}

func start(s *Server) (*Server, func()) {
	s.waiting = make(chan struct{}, 100)
	h := httptest.NewServer(s)
	s.URL = h.URL
	return s, h.Close
}

// Requests are the requests to the service so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Waiting has one value for each answer that has begun to wait.
func (s *Server) Waiting() <-chan struct{} { return s.waiting }

// next notes a request and returns its answer; model says that it asks a model.
func (s *Server) next(r *http.Request, body string, model bool) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	if !model {
		return Answer{}
	}
	if s.decide != nil {
		a := s.decide(body)
		a.id = len(s.requests)
		return a
	}
	a := s.answers[0]
	a.id = len(s.requests)
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return a
}

type object = map[string]any

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var q struct {
		Model   string
		Stream  bool
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(data, &q)
	p := r.URL.Path
	var speak func(*Answer) (whole object, events []object)
	switch post := r.Method == http.MethodPost; {
	case post && strings.HasSuffix(p, "/messages"):
		speak = messages
	case post && strings.HasSuffix(p, "/responses"):
		speak = responses
	case post && strings.HasSuffix(p, "/chat/completions"):
		speak = chat
	case post && strings.HasSuffix(p, "enerateContent"):
		speak = generate
		q.Stream = strings.HasSuffix(p, "streamGenerateContent")
		q.Model = p[strings.LastIndexByte(p, '/')+1 : strings.LastIndexByte(p, ':')]
	default:
		s.next(r, string(data), false)
		write(w, 200, object{"path": p, "echo": r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")})
		return
	}
	a := s.next(r, string(data), true)
	if a.Hangs {
		a.Wait = make(chan struct{})
	}
	if a.Model == "" {
		a.Model = q.Model
	}
	if strings.HasSuffix(p, "/chat/completions") && q.Stream && !q.Options.Usage {
		a.NoUsage = true
	}
	if a.Status != 0 {
		fail(w, p, a)
		return
	}
	whole, events := speak(&a)
	if !q.Stream {
		s.finish(&a, w, r, func() { write(w, 200, whole) })
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, e := range events {
		if i == len(events)-1 {
			break
		}
		s.event(w, e)
	}
	s.finish(&a, w, r, func() {
		last := events[len(events)-1]
		s.event(w, last)
		if last["type"] == "message_delta" {
			s.event(w, object{"type": "message_stop"})
		}
	})
}

// finish ends an answer, or lets it wait or break.
func (s *Server) finish(a *Answer, w http.ResponseWriter, r *http.Request, rest func()) {
	if a.Wait != nil {
		s.waiting <- struct{}{}
		select {
		case <-a.Wait:
		case <-r.Context().Done():
			return
		}
	}
	if a.CutOff {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	rest()
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) //nolint:errcheck // the client may be gone
}

func (s *Server) event(w http.ResponseWriter, v object) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	name, _ := v["type"].(string)
	if name != "" { // Google and Chat Completions send data only
		name = "event: " + name + "\r\n"
	}
	io.WriteString(w, name+"data: "+string(data)+"\r\n\r\n") //nolint:errcheck // the client may be gone
	w.(http.Flusher).Flush()
	if s.each != nil && s.each() {
		panic(http.ErrAbortHandler)
	}
}

func fail(w http.ResponseWriter, path string, a Answer) {
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	if a.NoRetry {
		w.Header().Set("X-Should-Retry", "false")
	}
	e := object{"type": a.Kind, "message": a.Message}
	if strings.HasSuffix(path, "enerateContent") {
		e = object{"code": a.Status, "status": a.Kind, "message": a.Message}
	}
	write(w, a.Status, object{"type": "error", "error": e})
}

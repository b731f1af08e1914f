package meter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Options configure a Proxy. Every field has a usable zero value.
type Options struct {
	// Prices are the prices of the settings.
	Prices map[string]schemas.Price
	// Transport sends requests to services. Default: Go's, with the proxy that the environment names, if it does.
	Transport http.RoundTripper
}

// Proxy is a metering proxy. It listens from the first Open to Close.
type Proxy struct {
	o   Options
	url string // http://127.0.0.1:PORT

	mu     sync.Mutex // guards the fields below
	server *http.Server
	closed bool
	runs   map[string]*Endpoint // by token
}

// New returns a proxy. It does not listen yet.
func New(o Options) *Proxy {
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // what is counted has to be read
		o.Transport = t
	}
	return &Proxy{o: o, runs: map[string]*Endpoint{}}
}

// Request asks for an endpoint.
type Request struct {
	Upstream string          // the address of the service
	Key      string          // of the service; "": none is sent
	Budget   *schemas.Budget // nil: no bounds
	Changed  func()          // called after each request, from any goroutine; may be nil
}

// Open returns an endpoint for one run, which the caller closes.
func (p *Proxy) Open(q Request) (*Endpoint, error) {
	if !schemas.IsEndpoint(q.Upstream) {
		return nil, errors.New("the address of the model's service is not valid")
	}
	up, err := url.Parse(strings.TrimRight(q.Upstream, "/"))
	if err != nil {
		return nil, errors.New("the address of the model's service is not valid")
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Endpoint{proxy: p, token: tokenPrefix + rand.Text(), upstream: up, key: q.Key, changed: q.Changed, ctx: ctx, cancel: cancel}
	if q.Budget != nil {
		e.budget = *q.Budget
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		cancel()
		return nil, errors.New("the metering proxy is closed")
	}
	if err := p.listen(); err != nil {
		cancel()
		return nil, err
	}
	p.runs[e.token] = e
	return e, nil
}

// tokenPrefix begins the tokens of runs, so that a person who finds one recognizes it.
const tokenPrefix = "reconcile-run-"

// listen starts the server; p.mu is held.
func (p *Proxy) listen() error {
	if p.server != nil {
		return nil
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the metering proxy cannot listen on 127.0.0.1: %w", err)
	}
	p.url = "http://" + l.Addr().String()
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go p.server.Serve(l) //nolint:errcheck // it ends with Close
	return nil
}

func (p *Proxy) remove(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, token)
}

// Close ends the server and all requests.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	runs, server := p.runs, p.server
	p.runs = map[string]*Endpoint{}
	p.mu.Unlock()
	for _, e := range runs {
		e.cancel()
	}
	if server == nil {
		return nil
	}
	return server.Close()
}

// ServeHTTP passes a request of a run on to its service.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := wireOf(r.Method, r.URL.Path)
	switch e := p.run(r); {
	case !p.fromHere(r):
		refuse(w, format, http.StatusForbidden, "permission_error", "this address serves only programs that reconcile runs")
	case e == nil:
		refuse(w, format, http.StatusUnauthorized, "authentication_error", "the token is not that of a run that is under way")
	case r.Header.Get("Upgrade") != "":
		refuse(w, format, http.StatusNotImplemented, "invalid_request_error", "the metering proxy of reconcile speaks plain HTTP only")
	default:
		e.serve(w, r, format)
	}
}

// fromHere reports whether a request was made by a program for this address: not by a page in a browser, nor by way of a name
// that leads here.
func (p *Proxy) fromHere(r *http.Request) bool {
	host := strings.TrimPrefix(p.url, "http://")
	return (r.Host == host || r.Host == "localhost"+host[strings.LastIndexByte(host, ':'):]) && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Site") == "" && !r.URL.IsAbs()
}

// run returns the run whose token a request has; nil for none.
func (p *Proxy) run(r *http.Request) *Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, token := range tokensOf(r) {
		if e := p.runs[token]; e != nil {
			return e
		}
	}
	return nil
}

// The headers and the parameter that carry keys.
var keyHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

const keyParameter = "key"

// tokensOf returns what a request carries in the places of keys.
func tokensOf(r *http.Request) (out []string) {
	for _, name := range keyHeaders {
		for _, v := range r.Header[name] {
			if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
				v = strings.TrimSpace(token)
			}
			out = append(out, v)
		}
	}
	return append(out, r.URL.Query()[keyParameter]...)
}

func refuse(w http.ResponseWriter, format wire, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(format.refusal(status, kind, message)) //nolint:errcheck // the client may be gone
}

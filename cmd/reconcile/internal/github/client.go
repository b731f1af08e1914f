package github

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	gogithub "github.com/google/go-github/v60/github"
)

// Options configure a client. Only Repo is required.
type Options struct {
	Repo      string        // owner/name
	BaseURL   string        // of the REST API; "": https://api.github.com/. Plain http only for a loopback address
	Token     string        // "": reads public data only
	Pace      time.Duration // between the starts of two writes; 0: a second; negative: none
	MaxWait   time.Duration // how long a call waits, in all, for limits to end; 0: a minute; negative: not at all
	Cache     string        // folder for responses and their ETags, created if missing; "": no cache
	UserAgent string        // "": reconcile
	Dry       func(Call)    // called with each write instead of sending it; nil: writes are sent

	Now   func() time.Time                           // nil: time.Now
	Sleep func(context.Context, time.Duration) error // returns early, with its error, when the context ends; nil: a timer
	Rand  func() float64                             // in [0, 1), for jitter; nil: math/rand
	// HTTP sends the requests, and reports connections to net/http/httptrace. nil: like http.DefaultTransport, with the
	// proxies of the environment.
	HTTP http.RoundTripper
}

// Client accesses one repository on GitHub. It is safe for concurrent use; requests are sent one at a time.
type Client struct {
	o           Options
	owner, name string
	base        *url.URL
	graphql     string       // URL
	wire        *http.Client // sends what api makes, and knows the limits that GitHub sets

	mu     sync.Mutex
	viewer *User
}

const defaultBaseURL = "https://api.github.com/"

// isRepo reports whether s is a valid owner/name on GitHub. It and isName avoid regular expressions, which would be
// compiled at each start.
func isRepo(s string) bool {
	owner, name, _ := strings.Cut(s, "/")
	return isName(owner, "-") && len(owner) <= 39 && name != "" && len(name) <= 100 && strings.Trim(name, alphanumeric+"._-") == ""
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// isName reports whether s has at most 100 letters, digits and characters of marks, and does not begin with a mark.
func isName(s, marks string) bool {
	return s != "" && len(s) <= 100 && strings.Contains(alphanumeric, s[:1]) && strings.Trim(s, alphanumeric+marks) == ""
}

// New returns a client. It rejects invalid options, and sends nothing.
func New(o Options) (*Client, error) {
	if !isRepo(o.Repo) {
		return nil, fmt.Errorf("%q is not the name of a repository on GitHub; write owner/name, as in octo/widgets", o.Repo)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("the token for GitHub has a character that no token has (a line break?); set it again")
	}
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	o.defaults()
	c := &Client{o: o, base: base, graphql: graphqlURL(base)}
	c.owner, c.name, _ = strings.Cut(o.Repo, "/")
	c.wire = &http.Client{Transport: newWire(o, base, c.graphql)}
	return c, nil
}

// api returns a client of the library, which keeps nothing between requests that the wire does not know. No field has its type: a program that
// looks up methods by their names, as conditions do, has all exported methods of all types that can be reached from the fields of a type in an
// interface, here those of the whole API.
func (c *Client) api() *gogithub.Client {
	api := gogithub.NewClient(c.wire)
	api.BaseURL, api.UserAgent = c.base, c.o.UserAgent
	return api
}

func (o *Options) defaults() {
	if o.Pace == 0 {
		o.Pace = time.Second
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute
	}
	if o.UserAgent == "" {
		o.UserAgent = "reconcile"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultTransport.(*http.Transport).Clone()
	}
}

// baseURL parses the root URL of an API, and appends the slash that relative paths need.
func baseURL(s string) (*url.URL, error) {
	if s == "" {
		s = defaultBaseURL
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("the URL of GitHub's API: %w", err)
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("the URL of GitHub's API has a user or password in it; give the token through the environment")
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q is not the root of an API; write https://host/api/v3 as your server's manual says", s)
	case u.Scheme == "http" && !loopbackAPI(u.Hostname()):
		return nil, fmt.Errorf("%q would send the token in the clear; write https://", s)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not a URL of the web; write https://…", s)
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

func loopbackAPI(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && net.IP(ip.AsSlice()).IsLoopback()
}

// graphqlURL returns the GraphQL endpoint: next to v3 on GitHub Enterprise Server, below the root on github.com.
func graphqlURL(base *url.URL) string {
	u := *base
	u.Path = strings.TrimSuffix(u.Path, "v3/") + "graphql"
	return u.String()
}

func numbered(issue int) error {
	if issue < 1 {
		return fmt.Errorf("there is no issue with the number %d: %w", issue, ErrInvalid)
	}
	return nil
}

// query sends a GraphQL query, and decodes "data" into out. Errors in the response are a *graphqlError.
func (c *Client) query(ctx context.Context, query string, variables map[string]any, out any) error {
	body := map[string]any{"query": query}
	if variables != nil {
		body["variables"] = variables
	}
	req, err := c.api().NewRequest(http.MethodPost, c.graphql, body)
	if err != nil {
		return err
	}
	if strings.HasPrefix(query, "query") {
		ctx = reading(ctx)
	}
	var answer graphqlAnswer
	if _, err := c.api().Do(ctx, req, &answer); err != nil {
		return unwrapped(err)
	}
	if len(answer.Errors) > 0 {
		return &answer.Errors[0]
	}
	if len(answer.Data) > 0 && json.Unmarshal(answer.Data, out) != nil {
		return fmt.Errorf("GitHub's answer to GraphQL is not of the form that was asked for: %w", ErrServer)
	}
	return nil
}

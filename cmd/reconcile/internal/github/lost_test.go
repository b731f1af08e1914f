package github_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// losses are the ways in which an answer is lost, and whether what was asked is done all the same.
var losses = map[string]struct {
	fault githubtest.Fault
	done  bool
}{
	"cut before it is done":         {githubtest.Fault{}, false},
	"cut after it is done":          {githubtest.Fault{After: true}, true},
	"cut in the middle of it":       {githubtest.Fault{After: true, Half: true}, true},
	"500 before it is done":         {githubtest.Fault{Status: 500}, false},
	"502 after it is done":          {githubtest.Fault{After: true, Status: 502}, true},
	"504, a page of a proxy":        {githubtest.Fault{After: true, Status: 504, Body: "<html>", Header: header("Content-Type", "text/html")}, true},
	"200, a page of somebody else":  {githubtest.Fault{After: true, Status: 200, Body: "<html>", Header: header("Content-Type", "text/html")}, true},
	"404, a page of somebody else":  {githubtest.Fault{After: true, Status: 404, Body: "<html>", Header: header("Content-Type", "text/html")}, true},
	"201, but the body is cut off":  {githubtest.Fault{After: true, Status: 201, Body: `{"id": 12,`, Header: header("Content-Type", "application/json")}, true},
	"503 with a hint when it is up": {githubtest.Fault{Status: 503, Header: header("Retry-After", "3")}, false},
}

func TestWhatCreatesIsNotSentAgainWhenItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, func(o *github.Options) { o.Pace = -1 })
	for name, l := range losses {
		issue := rig.Issue(t, githubtest.Owner, name)
		rig.Fail(1, "POST", "/comments", l.fault)
		rig.Journal()
		_, err := c.CreateComment(t.Context(), issue, "once")
		var uncertain *github.Uncertain
		if !errors.As(err, &uncertain) || !github.Later(err) || uncertain.Call.Method != "POST" {
			t.Errorf("%s: the error is %v, want *Uncertain", name, err)
		}
		if n := len(rig.Journal()); n != 1 {
			t.Errorf("%s: %d requests, want 1", name, n)
		}
		comments := must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{}))
		if (len(comments) == 1) != l.done {
			t.Errorf("%s: the comments are %+v", name, comments)
		}
	}
	for name, fault := range map[string]githubtest.Fault{
		"cut":            {After: true},
		"something else": {After: true, Status: 201, Body: `[]`, Header: header("Content-Type", "application/json")},
		"nothing":        {After: true, Status: 201, Body: `{}`, Header: header("Content-Type", "application/json")},
	} {
		rig.Fail(1, "POST", "/issues", fault)
		_, err := c.CreateIssue(t.Context(), github.NewIssue{Title: "an issue"})
		var uncertain *github.Uncertain
		if !errors.As(err, &uncertain) {
			t.Errorf("an issue, %s: the error is %v, want *Uncertain", name, err)
		}
	}
}

func TestWhatMayBeDoneTwiceIsTriedAgain(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, func(o *github.Options) { o.Pace = -1 })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	id := rig.Comment(t, githubtest.Bot, issue, "zero")
	ctx := t.Context()
	calls := map[string]struct {
		method, path string
		do           func() error
	}{
		"read":           {"GET", "/comments", func() error { _, err := c.GetComment(ctx, id); return err }},
		"edit":           {"PATCH", "/comments", func() error { _, err := c.EditComment(ctx, id, "one"); return err }},
		"edit an issue":  {"PATCH", "/issues", func() error { return c.EditIssue(ctx, issue, "another", "body") }},
		"add labels":     {"POST", "/labels", func() error { return c.AddLabels(ctx, issue, []string{"a", "b"}) }},
		"remove a label": {"DELETE", "/labels", func() error { return c.RemoveLabel(ctx, issue, "a") }},
		"make a label":   {"POST", "/labels", func() error { return c.EnsureLabel(ctx, github.Label{Name: "new", Color: "ffffff"}) }},
		"react":          {"POST", "/reactions", func() error { return c.React(ctx, id, github.Eyes) }},
	}
	for _, name := range []string{"read", "edit", "edit an issue", "add labels", "remove a label", "make a label", "react"} {
		call := calls[name]
		for loss, l := range losses {
			rig.Fail(2, call.method, call.path, l.fault)
			if err := call.do(); err != nil {
				t.Errorf("%s, %s: %v", name, loss, err)
			}
			rig.Heal()
		}
	}
	if got := must[*github.Issue](t)(c.Issue(ctx, issue)); !slices.Equal(got.Labels, []string{"b"}) || got.Title != "another" || got.Body != "body" {
		t.Errorf("the issue is %+v", got)
	}
	if got := rig.Reactions(githubtest.Bot, id); !slices.Equal(got, []string{github.Eyes}) {
		t.Errorf("the reactions are %q", got)
	}
	now.slept()
	rig.Fail(4, "GET", "", githubtest.Fault{Status: 502})
	must[*github.Issue](t)(c.Issue(ctx, issue))
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	if !slices.Equal(now.naps, want) {
		t.Errorf("backed off %v, want %v", now.naps, want)
	}
}

func TestBackOffHasAnEndAndJitter(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, func(o *github.Options) { o.Rand = func() float64 { return 0 } })
	rig.Fail(100, "GET", "", githubtest.Fault{Status: 503})
	_, err := c.Issue(t.Context(), 1)
	if !errors.Is(err, github.ErrServer) || !github.Later(err) {
		t.Errorf("the error is %v, want ErrServer", err)
	}
	if n := len(rig.Journal()); n != 5 {
		t.Errorf("%d tries, want 5", n)
	}
	want := []time.Duration{time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second}
	if !slices.Equal(now.naps, want) {
		t.Errorf("backed off %v, want the lower half: %v", now.naps, want)
	}
	rig.Heal()
	rig.Fail(100, "GET", "", githubtest.Fault{})
	if _, err := c.Issue(t.Context(), 1); !errors.Is(err, github.ErrUnreachable) || !github.Later(err) {
		t.Errorf("the error is %v, want ErrUnreachable", err)
	}
}

// TestNobodyThere needs no emulator: what was never sent is not uncertain.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now := &clock{now: time.Now()}
	c := must[*github.Client](t)(github.New(github.Options{Repo: "a/b", BaseURL: url, Token: "t", Now: now.Now, Sleep: now.Sleep}))
	_, err = c.CreateComment(t.Context(), 1, "x")
	var uncertain *github.Uncertain
	if !errors.Is(err, github.ErrUnreachable) || errors.As(err, &uncertain) || !github.Later(err) {
		t.Errorf("the error is %v, want ErrUnreachable only", err)
	}
	if len(now.naps) < 4 {
		t.Errorf("tried again only after %v", now.naps)
	}
}

// TestAConnectionThatWasClosedMeanwhile: whoever served it may close it while nothing is said, and what is said next then
// goes over another one, whole.
func TestAConnectionThatWasClosedMeanwhile(t *testing.T) {
	t.Parallel()
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":1}`))
	}))
	defer server.Close()
	now := &clock{now: time.Now()}
	c := must[*github.Client](t)(github.New(github.Options{Repo: "a/b", BaseURL: server.URL, Token: "t", Pace: -1, Now: now.Now, Sleep: now.Sleep}))
	for range 3 {
		must[*github.Comment](t)(c.EditComment(t.Context(), 1, "text"))
		server.CloseClientConnections()
	}
	for _, b := range bodies {
		if b != `{"body":"text"}` {
			t.Errorf("the body was %q", b)
		}
	}
}

// carrier is an http.RoundTripper of a test.
type carrier func(*http.Request) (*http.Response, error)

func (f carrier) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestACallerWhoGivesUpIsToldWhatMayHaveHappened(t *testing.T) {
	t.Parallel()
	rig := githubtest.Start(t)
	now := &clock{now: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	c := connect(t, rig, now, func(o *github.Options) {
		o.HTTP = carrier(func(r *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(r)
			cancel() // while the answer is under way
			if err == nil {
				err = r.Context().Err()
				resp.Body.Close()
			}
			return nil, err
		})
	})
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	_, err := c.CreateComment(ctx, issue, "once")
	var uncertain *github.Uncertain
	if !errors.As(err, &uncertain) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want *Uncertain, canceled", err)
	}
	if n := len(rig.Journal()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if _, err := c.Issue(ctx, issue); !errors.Is(err, context.Canceled) || github.Later(err) {
		t.Errorf("the error is %v, want canceled", err)
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	c := must[*github.Client](t)(github.New(github.Options{
		Repo: "a/b", Token: "t", Now: now.Now, Sleep: now.Sleep,
		HTTP: carrier(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}, Request: r}, nil
		}),
	}))
	if _, err := c.Issue(t.Context(), 1); !errors.Is(err, github.ErrInvalid) || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("the error is %v", err)
	}
}

func TestAListWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	asked := 0
	c := must[*github.Client](t)(github.New(github.Options{
		Repo: "a/b", Token: "t",
		HTTP: carrier(func(r *http.Request) (*http.Response, error) {
			asked++
			h := header("Link", fmt.Sprintf(`<https://api.github.com/x?page=%d>; rel="next"`, asked+1))
			return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader("[]")), Request: r}, nil
		}),
	}))
	if _, err := c.Comments(t.Context(), 1, time.Time{}); !errors.Is(err, github.ErrInvalid) || asked != 1000 {
		t.Errorf("after %d pages the error is %v", asked, err)
	}
}

// TestOneRequestAtATime needs no emulator, so that the race detector sees it, too.
func TestOneRequestAtATime(t *testing.T) {
	t.Parallel()
	var under, most, all atomic.Int32
	c := must[*github.Client](t)(github.New(github.Options{
		Repo: "a/b", Token: "t", Pace: -1, Cache: t.TempDir(),
		HTTP: carrier(func(r *http.Request) (*http.Response, error) {
			defer under.Add(-1)
			if n := under.Add(1); n > 1 {
				most.Store(n)
			}
			all.Add(1)
			runtime.Gosched()
			body := `{"id":1,"login":"me"}`
			if strings.HasSuffix(r.URL.Path, "/comments") && r.Method == http.MethodGet {
				body = "[]"
			}
			h := header("Content-Type", "application/json", "ETag", `"x"`)
			return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}),
	}))
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			if _, err := c.CreateComment(t.Context(), 1, fmt.Sprint(n)); err != nil {
				t.Error(err)
			}
			if _, err := c.Comments(t.Context(), 1, time.Time{}); err != nil {
				t.Error(err)
			}
			if _, err := c.Viewer(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() != 0 || all.Load() != 41 {
		t.Errorf("%d requests, %d of them at once; want 41, one by one", all.Load(), most.Load())
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
func (endless) Close() error { return nil }

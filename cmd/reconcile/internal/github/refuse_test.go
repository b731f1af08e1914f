package github_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

func TestNewRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    github.Options
		want string // "": accepted
	}{
		{github.Options{Repo: "octo/widgets"}, ""},
		{github.Options{Repo: "octo/widgets", BaseURL: "https://github.corp.test/api/v3"}, ""},
		{github.Options{Repo: "octo/widgets", BaseURL: "http://127.0.0.1:4001"}, ""},
		{github.Options{Repo: "octo/widgets", BaseURL: "http://[::1]:4001/"}, ""},
		{github.Options{Repo: "octo/widgets", BaseURL: "http://localhost:4001/"}, ""},
		{github.Options{}, "owner/name"},
		{github.Options{Repo: "octo"}, "owner/name"},
		{github.Options{Repo: "octo/../x"}, "owner/name"},
		{github.Options{Repo: "https://github.com/octo/widgets"}, "owner/name"},
		{github.Options{Repo: "a/b", Token: "two\nlines"}, "token"},
		{github.Options{Repo: "a/b", BaseURL: "http://github.corp.test/api/v3"}, "in the clear"},
		{github.Options{Repo: "a/b", BaseURL: "http://localhost.evil.test/"}, "in the clear"},
		{github.Options{Repo: "a/b", BaseURL: "ftp://github.corp.test/"}, "https://"},
		{github.Options{Repo: "a/b", BaseURL: "https://me:pw@github.corp.test/"}, "password"},
		{github.Options{Repo: "a/b", BaseURL: "https://github.corp.test/?token=x"}, "root of an API"},
		{github.Options{Repo: "a/b", BaseURL: "github.corp.test"}, "root of an API"},
		{github.Options{Repo: "a/b", BaseURL: "https://x\x7f"}, "URL"},
	} {
		_, err := github.New(c.o)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: the error is %v, want one with %q", c.o, err, c.want)
		case err != nil && (strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "lines")):
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}

// complains is an answer that says no in GitHub's form.
func complains(status int, message string) *githubtest.Fault {
	return &githubtest.Fault{Status: status, Body: `{"message":"` + message + `"}`, Header: header("Content-Type", "application/json")}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	gone := rig.Comment(t, githubtest.Mona, issue, "a comment")
	rig.DeleteComment(t, githubtest.Mona, gone)
	read := func() error { _, err := c.GetComment(t.Context(), gone); return err }
	write := func() error { _, err := c.EditComment(t.Context(), gone, "new"); return err }
	create := func() error { _, err := c.CreateComment(t.Context(), issue, "new"); return err }
	html := header("Content-Type", "text/html")
	for name, r := range map[string]struct {
		fault *githubtest.Fault
		part  string
		do    func() error
		want  error
	}{
		"a comment that was deleted":    {nil, "", read, github.ErrGone},
		"editing one":                   {nil, "", write, github.ErrGone},
		"an issue that was deleted":     {&githubtest.Fault{Status: 410}, "/comments", create, github.ErrGone},
		"a 404 of a proxy":              {&githubtest.Fault{Status: 404, Body: "<h1>", Header: html}, "/comments", read, github.ErrUnreachable},
		"a 410 of a proxy":              {&githubtest.Fault{Status: 410, Body: "<h1>", Header: html}, "/comments", read, github.ErrUnreachable},
		"JSON that is not GitHub's":     {&githubtest.Fault{Status: 404, Body: "{}", Header: header("Content-Type", "application/json")}, "/comments", read, github.ErrUnreachable},
		"access that was lost":          {&githubtest.Fault{Status: 404}, "", read, github.ErrForbidden},
		"a token that expired":          {&githubtest.Fault{Status: 401}, "/comments", create, github.ErrUnauthorized},
		"a right that is missing":       {&githubtest.Fault{Status: 403}, "/comments", create, github.ErrForbidden},
		"a body that is too long":       {&githubtest.Fault{Status: 422}, "/comments", create, github.ErrInvalid},
		"a conversation that is locked": {complains(403, "Unable to create comment because issue is locked."), "/comments", create, github.ErrLocked},
		"a repository without issues":   {complains(410, "Issues has been disabled in this repository."), "/comments", create, github.ErrNoIssues},
		"a repository that moved":       {&githubtest.Fault{Status: 301, Header: header("Location", "https://elsewhere.test/x")}, "", create, github.ErrMoved},
		"one that moved for a time":     {&githubtest.Fault{Status: 307, Header: header("Location", "https://elsewhere.test/x")}, "", read, github.ErrMoved},
		"an issue that was transferred": {&githubtest.Fault{Status: 301, Header: header("Location", "https://elsewhere.test/x")}, "/comments", create, github.ErrTransferred},
	} {
		if r.fault != nil {
			rig.Fail(10, "", r.part, *r.fault)
		}
		err := r.do()
		rig.Heal()
		if !errors.Is(err, r.want) {
			t.Errorf("%s: the error is %v, want %v", name, err, r.want)
		}
		for _, kind := range []error{github.ErrGone, github.ErrForbidden, github.ErrUnauthorized, github.ErrInvalid, github.ErrMoved,
			github.ErrTransferred, github.ErrLocked, github.ErrNoIssues} {
			if kind != r.want && errors.Is(err, kind) {
				t.Errorf("%s: the error is %v, too: %v", name, kind, err)
			}
		}
	}
	for _, number := range []int{0, -1} {
		if _, err := c.Comments(t.Context(), number, time.Time{}); !errors.Is(err, github.ErrInvalid) {
			t.Errorf("issue %d: %v", number, err)
		}
	}
	if n := len(must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{}))); n != 0 {
		t.Errorf("%d comments were written", n)
	}
}

// TestGoneIsNotSaidWhileNothingCanBeSeen: GitHub stops answering between the 404 and the look at the repository.
func TestGoneIsNotSaidWhileNothingCanBeSeen(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	rig.Fail(1, "GET", "/issues/comments/", githubtest.Fault{Status: 404})
	rig.Fail(10, "GET", "/repos/", githubtest.Fault{Status: 502})
	if _, err := c.GetComment(t.Context(), 1); errors.Is(err, github.ErrGone) || !errors.Is(err, github.ErrServer) {
		t.Errorf("the error is %v, want ErrServer", err)
	}
}

// TestTheTokenGoesNowhereElse needs no emulator.
func TestTheTokenGoesNowhereElse(t *testing.T) {
	t.Parallel()
	const token = "a-very-secret-token"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was sent, with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s has no token", r.URL)
		}
		if strings.HasSuffix(r.URL.Path, "/2") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"message":"\u001b[31mBearer ` + token + `\n","errors":["` + token + `"]}`))
			return
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer there.Close()
	c := must[*github.Client](t)(github.New(github.Options{Repo: "a/b", BaseURL: there.URL, Token: token, Pace: -1}))
	_, one := c.Issue(t.Context(), 1)
	_, two := c.Issue(t.Context(), 2)
	three := c.React(t.Context(), 3, github.Eyes)
	for _, err := range []error{one, two, three} {
		if err == nil || strings.Contains(err.Error(), token) || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("the error is %q", err)
		}
	}
	if !errors.Is(one, github.ErrMoved) || !errors.Is(two, github.ErrInvalid) || !errors.Is(three, github.ErrMoved) {
		t.Errorf("the errors are %v; %v; %v", one, two, three)
	}
}

func TestWithoutATokenOnlyReadingWorks(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, func(o *github.Options) { o.Token = "" })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	must[*github.Issue](t)(c.Issue(t.Context(), issue))
	rig.Journal()
	if _, err := c.CreateComment(t.Context(), issue, "x"); !errors.Is(err, github.ErrUnauthorized) || len(rig.Journal()) != 0 {
		t.Errorf("the error is %v", err)
	}
	wrong := connect(t, rig, &clock{now: time.Now()}, func(o *github.Options) { o.Token = "not-one-of-them" })
	if _, err := wrong.Viewer(t.Context()); !errors.Is(err, github.ErrUnauthorized) {
		t.Errorf("the error is %v", err)
	}
}

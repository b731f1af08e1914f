package mirroring

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/state"
)

// station is a tree that is mirrored to the GitHub of tests.
type station struct {
	t     testing.TB
	rig   *githubtest.Rig
	dir   string
	cache string
}

func newStation(t testing.TB) *station {
	return &station{t: t, rig: githubtest.Start(t), dir: t.TempDir(), cache: t.TempDir()}
}

// out is one process that mirrors issues. No limit and no pace makes it wait.
func (s *station) out(issues []mirror.Issue) (Report, error) {
	s.t.Helper()
	store, err := state.Open(s.dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Agent: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // everything is on disk
	client, err := github.New(github.Options{
		Repo: s.rig.Repo, BaseURL: s.rig.URL, Token: githubtest.Token(githubtest.Bot), Cache: s.cache, Pace: -1, MaxWait: -1,
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	m := &Mirror{Remote: client, Records: NewRecords(store, s.rig.Repo, false, func(text string) { s.t.Log(text) }), Now: time.Now}
	if m.Keys, err = m.Records.Keys(s.t.Context(), ""); err != nil {
		s.t.Fatal(err)
	}
	return m.Out(s.t.Context(), numbered(s.t, m.Records, issues))
}

// bodies are the comments on an issue, as anybody sees them.
func (s *station) bodies(issue int) (out []string) {
	s.t.Helper()
	var all []struct{ Body string }
	s.rig.MustDo(s.t, githubtest.Mona, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments?per_page=100", s.rig.Repo, issue), nil, &all)
	for _, c := range all {
		out = append(out, c.Body)
	}
	return out
}

// on is the projection of a tree: a DAG on an issue of a person, one on an issue that is to be made, and a question.
func on(issue int, text string, labels ...string) []mirror.Issue {
	issues := wanted(text, labels...)
	issues[0].Number = issue
	return issues
}

func TestOutAgainstAnEmulator(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	issue := s.rig.Issue(t, githubtest.Mona, "Health endpoint", "bug")
	s.rig.Comment(t, githubtest.Mona, issue, "hello")
	r, err := s.out(on(issue, "one", "clarification:active"))
	if err != nil || r.Comments != 3 || r.Issues != 1 || r.Labels != 1 || r.Left != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	_ = s.rig.Journal()
	r, err = s.out(on(issue, "one", "clarification:active"))
	if calls := s.rig.Journal(); err != nil || r.calls() != 0 || len(calls) != 0 {
		t.Errorf("a run without news: %+v, %v, %v", r, err, calls)
	}
	if r, err := s.out(on(issue, "two @nobody <b>", "clarification:stale")); err != nil || r.Edits != 4 || r.Labels != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	got := s.bodies(issue)
	if len(got) != 3 || got[0] != "hello" || !strings.HasPrefix(got[1], "two @nobody <b>\n\n<!-- reconcile status/dag/x ") {
		t.Errorf("there are %q", got)
	}
	var i struct{ Labels []struct{ Name string } }
	s.rig.MustDo(t, githubtest.Mona, "GET", fmt.Sprintf("/repos/%s/issues/%d", s.rig.Repo, issue), nil, &i)
	if names := fmt.Sprint(i.Labels); !strings.Contains(names, "bug") || !strings.Contains(names, "clarification:stale") ||
		strings.Contains(names, "active") {
		t.Errorf("labels %v", i.Labels)
	}
}

// TestAnswersThatAreLost cuts the connection at each write, before and after it is done, and lets GitHub fail and limit:
// in the end everything is there once.
func TestAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]githubtest.Fault{
		"cut before":      {},
		"cut after":       {After: true},
		"502 after":       {After: true, Status: http.StatusBadGateway},
		"secondary limit": {Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/issues", "/comments", "/labels"} {
				s := newStation(t)
				issue := s.rig.Issue(t, githubtest.Mona, "Health endpoint")
				s.rig.Fail(1, "POST", path, f)
				for n := 0; ; n++ {
					r, err := s.out(on(issue, "one", "clarification:active"))
					if err == nil && r.Left == 0 {
						break
					}
					s.cache = t.TempDir() // the next process, after the limit
					if n == 5 {
						t.Fatalf("%s: %+v, %v", path, r, err)
					}
				}
				if got := s.bodies(issue); len(got) != 2 {
					t.Errorf("%s: there are %q", path, got)
				}
				var all []struct{ Title string }
				s.rig.MustDo(t, githubtest.Mona, "GET", "/repos/"+s.rig.Repo+"/issues?state=all", nil, &all)
				if len(all) != 2 {
					t.Errorf("%s: the issues are %v", path, all)
				}
			}
		})
	}
}

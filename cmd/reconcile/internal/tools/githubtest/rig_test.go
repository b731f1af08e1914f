package githubtest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// send makes a request of the proxy, and returns the status of the answer.
func send(t *testing.T, r *Rig, method, path, body string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(r.URL, "/")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Token(Bot))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// TestWhatGitHubWouldNotUnderstandIsSeen tests the judge of requests.
func TestWhatGitHubWouldNotUnderstandIsSeen(t *testing.T) {
	t.Parallel()
	Start(t) // skips, or fails, where nothing is installed
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	repo := "/repos/" + r.Repo
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", repo + "/issues/1/comments?per_page=100&page=2&since=2026-11-22T06:00:00Z", "", ""},
		{"GET", repo + "/labels/clarification%3Aactive", "", ""},
		{"POST", repo + "/issues", `{"title":"t","labels":["l"]}`, ""},
		{"POST", repo + "/issues/comments/1/reactions", `{"content":"eyes"}`, ""},
		{"GET", repo + "/issue/1", "", "no such operation"},
		{"PUT", repo + "/issues/1", "", "no such operation"},
		{"GET", repo + "/issues/one/comments", "", `issue_number="one"`},
		{"GET", repo + "/issues/1/comments?sort=created", "", "no parameter sort"},
		{"GET", repo + "/issues/1/comments?since=yesterday", "", `since="yesterday"`},
		{"GET", repo + "/issues?state=shut", "", `state="shut"`},
		{"POST", repo + "/issues", "", "body is missing"},
		{"POST", repo + "/issues", `{"body":"no title"}`, "title"},
		{"POST", repo + "/issues", `{"title":"t","colour":"red"}`, "colour"},
		{"POST", repo + "/issues/1/labels", `["an","array"]`, "labels"},
		{"POST", repo + "/issues/comments/1/reactions", `{"content":"applause"}`, "content"},
		{"DELETE", repo + "/issues/1/labels/x", `{"a":1}`, "no body"},
		{"GET", "/user", "", "User-Agent"},
	} {
		agent := "a test"
		if c.want == "User-Agent" {
			agent = ""
		}
		send(t, r, c.method, c.path, c.body, "User-Agent", agent)
		got := strings.Join(r.Violations(), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s %s: found %q, want %q", c.method, c.path, c.body, got, c.want)
		}
		r.proxy.violations = nil
	}
}

func TestFaultsAndTheJournal(t *testing.T) {
	t.Parallel()
	r := Start(t)
	path := "/repos/" + r.Repo + "/issues"
	const issue = `{"title":"t"}`
	agent := []string{"User-Agent", "a test"}
	r.Fail(1, "POST", "/issues", Fault{})
	r.Fail(1, "POST", "/issues", Fault{After: true})
	r.Fail(1, "POST", "/issues", Fault{After: true, Status: 502})
	r.Fail(1, "", "/issues", Fault{Status: 429})
	var got []int
	for range 5 {
		got = append(got, send(t, r, "POST", path, issue, agent...))
	}
	if want := []int{0, 0, 502, 429, 201}; !slices.Equal(got, want) {
		t.Errorf("the answers were %v, want %v", got, want)
	}
	var done []bool
	for _, line := range r.Journal() {
		done = append(done, line.Done)
		if line.Method != "POST" || line.Path != path || line.Body != issue {
			t.Errorf("the journal has %+v", line)
		}
	}
	if want := []bool{false, true, true, false, true}; !slices.Equal(done, want) || len(r.Journal()) != 0 {
		t.Errorf("done were %v, want %v", done, want)
	}
	var all []struct{ Number int }
	r.MustDo(t, Owner, "GET", path+"?state=all", nil, &all)
	if len(all) != 3 {
		t.Errorf("%d issues were made, want 3", len(all))
	}
	r.Fail(1, "", "", Fault{})
	r.Heal()
	if got := send(t, r, "GET", path, "", agent...); got != 200 {
		t.Errorf("after Heal the answer is %d", got)
	}
	if got := send(t, r, "GET", path, "", "User-Agent", "a test", "Authorization", "Bearer forged"); got != 401 {
		t.Errorf("an unknown token is answered with %d", got)
	}
}

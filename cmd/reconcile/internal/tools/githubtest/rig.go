package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// Rig is one repository on the GitHub of tests, seen through a proxy of its own.
type Rig struct {
	URL  string // the root of the API
	Repo string // owner/name

	emulator *emulator
	server   *httptest.Server
	proxy    *proxy
}

// Required is the environment variable that makes Start fail, with the value "required", where it would skip.
const Required = "RECONCILE_GITHUB_TESTS"

// Start returns a rig with a fresh repository, which ends with the test. The test fails when a request does not conform
// to GitHub's description of its API, or when two requests are under way at once.
func Start(t testing.TB) *Rig {
	t.Helper()
	required := os.Getenv(Required) == "required"
	if testing.Short() && !required {
		t.Skip("-short: not tested against a GitHub")
	}
	r, err := New()
	switch {
	case err == nil:
	case required:
		t.Fatalf("%v\n%s=required: run \"go run ./cmd/reconcile/internal/tools/check github\", which installs it", err, Required)
	default:
		t.Skipf("SKIPPED, not tested against a GitHub: %v\n\"go run ./cmd/reconcile/internal/tools/check github\" installs it", err)
	}
	t.Cleanup(func() {
		r.Close()
		for _, v := range r.Violations() {
			t.Error(v)
		}
	})
	return r
}

// New returns a running Rig of the emulator and a proxy with a fresh repository, for programs other than tests. The
// caller closes it.
func New() (*Rig, error) {
	e, err := running()
	if err != nil {
		return nil, err
	}
	api, err := readDescription(description(e.dir))
	if err != nil {
		return nil, err
	}
	r := &Rig{Repo: e.repository(), emulator: e}
	r.proxy = &proxy{emulator: e, api: api, reactions: map[int64][]reaction{}}
	r.server = httptest.NewServer(r.proxy)
	r.URL = r.server.URL + "/"
	return r, r.prepare()
}

// prepare makes the repository, and gives the accounts their roles.
func (r *Rig) prepare() error {
	name := strings.TrimPrefix(r.Repo, Owner+"/")
	if err := r.Do(Owner, "POST", "/user/repos", map[string]any{"name": name, "auto_init": true}, nil); err != nil {
		return err
	}
	for _, login := range []string{Bot, Mona} {
		path := "/repos/" + r.Repo + "/collaborators/" + login
		if err := r.Do(Owner, "PUT", path, map[string]any{"permission": "push"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the proxy. The repository stays in the emulator, unused.
func (r *Rig) Close() { r.server.Close() }

// Do does a request to the emulator with the token of a login, past the rig's proxy: what people do meanwhile. out may
// be nil.
func (r *Rig) Do(login, method, path string, in, out any) error {
	if method != http.MethodGet {
		defer r.proxy.wrote()
	}
	return r.emulator.do(Token(login), method, path, in, out)
}

func (e *emulator) do(token, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, e.url.String()+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+e.token(token))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the emulator answers %s %s with %s: %s", method, path, resp.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// MustDo does a request to the rig as [Rig.Do] does, and fails the test on an error.
func (r *Rig) MustDo(t testing.TB, login, method, path string, in, out any) {
	t.Helper()
	if err := r.Do(login, method, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// Issue posts an issue with a title and labels as the account of a login, and returns the number of the issue made.
func (r *Rig) Issue(t testing.TB, login, title string, labels ...string) int {
	t.Helper()
	var made struct{ Number int }
	issue := map[string]any{"title": title, "body": title, "labels": append([]string{}, labels...)}
	r.MustDo(t, login, "POST", "/repos/"+r.Repo+"/issues", issue, &made)
	return made.Number
}

// Comment posts a comment on an issue as the account of a login, and returns the id of the comment made.
func (r *Rig) Comment(t testing.TB, login string, issue int, body string) int64 {
	t.Helper()
	var made struct{ ID int64 }
	path := fmt.Sprintf("/repos/%s/issues/%d/comments", r.Repo, issue)
	r.MustDo(t, login, "POST", path, map[string]any{"body": body}, &made)
	return made.ID
}

// EditComment patches the body of a comment as the account of a login.
func (r *Rig) EditComment(t testing.TB, login string, id int64, body string) {
	t.Helper()
	r.MustDo(t, login, "PATCH", fmt.Sprintf("/repos/%s/issues/comments/%d", r.Repo, id), map[string]any{"body": body}, nil)
}

// DeleteComment deletes a comment as an account.
func (r *Rig) DeleteComment(t testing.TB, login string, id int64) {
	t.Helper()
	r.MustDo(t, login, "DELETE", fmt.Sprintf("/repos/%s/issues/comments/%d", r.Repo, id), nil, nil)
}

// Reactions returns the reactions of the account of a login to a comment, from the rig's proxy.
func (r *Rig) Reactions(login string, comment int64) []string {
	return r.proxy.reactionsOf(login, comment)
}

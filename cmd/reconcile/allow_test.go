package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
)

// listener is an endpoint for embeddings that remembers what it was sent.
type listener struct {
	*httptest.Server
	mu    sync.Mutex
	heads []string // Authorization of each request
}

func newListener(t *testing.T) *listener {
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.heads = append(l.heads, r.Header.Get("Authorization"))
		l.mu.Unlock()
		var asked struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		var rows []string
		for i := range asked.Input {
			rows = append(rows, fmt.Sprintf(`{"index":%d,"embedding":[1,0,0,%d]}`, i, i))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(rows, ","))
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.heads...)
}

// foreign is a clone of somebody else's repository, whose settings name an endpoint and a variable.
type foreign struct {
	*testing.T
	dir string
	env map[string]string
}

func newForeign(t *testing.T, endpoint, variable string) *foreign {
	f := &foreign{T: t, dir: t.TempDir(), env: map[string]string{
		"AWS_SECRET_ACCESS_KEY": "aws-secret", "EVIL_API_KEY": "evil-secret"}}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	writeFiles(t, f.dir, map[string]string{
		"reconcile.yaml": fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n"+
			"spec: {index: {embedder: openai, endpoint: %q, model: m, dimensions: 4, apiKeyEnv: %s}}\n", endpoint, variable),
		"specs/s.yaml":  "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: s}\nspec: {title: Locks}\n",
		"docs/locks.md": "# Locks\n\nA lock is taken before a file is written.\n",
	})
	return f
}

func (f *foreign) do(args ...string) (code int, out, complaints string) {
	f.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, engine: engine.Run,
		getenv: func(name string) string { return f.env[name] }}
	code = a.main(f.Context(), append([]string{"-C", f.dir}, args...))
	return code, stdout.String(), stderr.String()
}

// TestNothingIsSentUnasked: a search in a clone whose settings name an endpoint sends it nothing, answers by words, and
// says once what to do; once it is allowed, the key goes to that address and to no other.
func TestNothingIsSentUnasked(t *testing.T) {
	l := newListener(t)
	f := newForeign(t, l.URL+"/v1", "EVIL_API_KEY")
	for range 2 {
		code, out, said := f.do("search", "lock")
		if code != 0 || !strings.Contains(out, "docs/locks.md") {
			t.Errorf("search: exit %d\n%s%s", code, out, said)
		}
		if n := strings.Count(said, `run "reconcile allow"`); n != 1 {
			t.Errorf("search says %d times what to do, want once:\n%s", n, said)
		}
	}
	for _, args := range [][]string{{"index", "--rebuild"}, {"index", "--verify"}, {"run"}, {"allow", "--list"}} {
		f.do(args...)
	}
	if heads := l.seen(); len(heads) > 0 {
		t.Fatalf("%d requests were sent before the endpoint was allowed: %q", len(heads), heads)
	}

	f.env["RECONCILE_RUN"] = "dags/d/n-1"
	if code, _, said := f.do("allow"); code != exitUsage || !strings.Contains(said, "only a person") {
		t.Errorf("allow inside of a run: exit %d, %s", code, said)
	}
	delete(f.env, "RECONCILE_RUN")
	if code, out, said := f.do("allow"); code != 0 || !strings.Contains(out, l.URL+"/v1") || !strings.Contains(out, "EVIL_API_KEY") {
		t.Errorf("allow: exit %d\n%s%s", code, out, said)
	}
	if code, _, said := f.do("index", "--rebuild"); code != 0 {
		t.Errorf("index: exit %d: %s", code, said)
	}
	heads := l.seen()
	if len(heads) == 0 || heads[0] != "Bearer evil-secret" {
		t.Errorf("what was sent once it was allowed: %q", heads)
	}

	// Another address, or another variable, is another destination.
	other := newListener(t)
	f.rewrite(l.URL, other.URL)
	f.do("index", "--rebuild")
	f.rewrite(other.URL, l.URL)
	f.rewrite("EVIL_API_KEY", "OTHER_API_KEY")
	f.do("index", "--rebuild")
	if n := len(l.seen()); len(other.seen()) > 0 || n != len(heads) {
		t.Errorf("what was not allowed was sent: %q, %q", other.seen(), l.seen()[len(heads):])
	}

	f.env[egress.AllowVariable] = "https://example.com, " + l.URL + "/v1/"
	f.do("index", "--rebuild")
	if n := len(l.seen()); n == len(heads) {
		t.Errorf("%s allowed nothing", egress.AllowVariable)
	}
	delete(f.env, egress.AllowVariable)
	if code, _, _ := f.do("allow", "--remove", l.URL+"/v1"); code != 0 {
		t.Errorf("allow --remove: exit %d", code)
	}
	f.rewrite("OTHER_API_KEY", "EVIL_API_KEY")
	before := len(l.seen())
	f.do("index", "--rebuild")
	if len(l.seen()) != before {
		t.Error("an address that is not allowed any more was sent something")
	}
}

// rewrite replaces a text in the settings.
func (f *foreign) rewrite(old, new string) {
	f.Helper()
	p := filepath.Join(f.dir, "reconcile.yaml")
	data, err := os.ReadFile(p)
	if err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(p, bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o644); err != nil {
		f.Fatal(err)
	}
}

// TestOnlyKeysAreNamed: settings cannot name a variable of another program, also where everything is allowed.
func TestOnlyKeysAreNamed(t *testing.T) {
	l := newListener(t)
	f := newForeign(t, l.URL+"/v1", "AWS_SECRET_ACCESS_KEY")
	if code, _, said := f.do("allow"); code == 0 || !strings.Contains(said, "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("allow: exit %d: %s", code, said)
	}
	f.env[egress.AllowVariable] = l.URL + "/v1"
	if code, out, said := f.do("search", "lock"); code != 0 || !strings.Contains(out, "docs/locks.md") {
		t.Errorf("search: exit %d\n%s%s", code, out, said)
	}
	if code, out, said := f.do("validate"); code != 0 || !strings.Contains(out+said, "never sent") {
		t.Errorf("validate: exit %d: %s%s", code, out, said)
	}
	if heads := l.seen(); len(heads) > 0 {
		t.Errorf("sent: %q", heads)
	}
}

// TestGitHubElsewhere: a token goes to an address that the settings name only when that is allowed.
func TestGitHubElsewhere(t *testing.T) {
	l := newListener(t)
	f := newForeign(t, "https://unused.example.com/v1", "EVIL_API_KEY")
	f.env["GITHUB_TOKEN"] = "gh-secret"
	writeFiles(t, f.dir, map[string]string{"reconcile.yaml": fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\n"+
		"metadata: {name: settings}\nspec: {github: {repo: o/r, mirror: true, pace: 0s, baseURL: %q}}\n", l.URL)})
	if code, _, said := f.do("run"); code != 0 || !strings.Contains(said, "reconcile allow") {
		t.Errorf("run: exit %d: %s", code, said)
	}
	if code, _, said := f.do("plan", "--github"); code != 1 || !strings.Contains(said, "reconcile allow") {
		t.Errorf("plan --github: exit %d: %s", code, said)
	}
	if heads := l.seen(); len(heads) > 0 {
		t.Fatalf("sent before it was allowed: %q", heads)
	}
	f.env["GITHUB_API_URL"] = l.URL // the environment is the user's own
	f.do("plan", "--github")
	if heads := l.seen(); len(heads) == 0 || heads[0] != "Bearer gh-secret" {
		t.Errorf("sent to the address of the environment: %q", heads)
	}
}

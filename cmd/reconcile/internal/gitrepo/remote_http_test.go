package gitrepo

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// gitServer serves the repositories below a folder over smart HTTP, as git itself does it. before may answer a request
// itself, or spoil the answer; it returns false when it is done with the request.
func gitServer(t *testing.T, dir string, before func(h http.Handler, w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=someone"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || before(backend, w, r) {
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// isPush reports whether a request is one that changes references.
func isPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

// abort breaks the connection without an answer.
func abort() { panic(http.ErrAbortHandler) }

// overHTTP is a fixture whose origin is on a server.
func overHTTP(t *testing.T, before func(h http.Handler, w http.ResponseWriter, r *http.Request) bool) (f *fixture, bare string) {
	f, _, bare = shared(t)
	f.git("remote", "set-url", "origin", gitServer(t, filepath.Dir(bare), before)+filepath.Base(bare))
	return f, bare
}

// TestRemoteGoesAway: wherever the connection breaks, a push ends as what it is: done, not done, or not known.
func TestRemoteGoesAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil  func(h http.Handler, w http.ResponseWriter, r *http.Request)
		landed bool
	}{
		"before it arrives": {func(http.Handler, http.ResponseWriter, *http.Request) { abort() }, false},
		"in the middle of the request": {func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body[:len(body)/2])), int64(len(body)/2)
			h.ServeHTTP(httptest.NewRecorder(), r)
			abort()
		}, false},
		"when it is done": {func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(httptest.NewRecorder(), r)
			abort()
		}, true},
		"in the middle of the answer": {func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
			w.(http.Flusher).Flush()
			abort()
		}, true},
		"an answer of something else": {func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "maintenance", http.StatusBadGateway)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calm atomic.Bool
			f, bare := overHTTP(t, func(h http.Handler, w http.ResponseWriter, r *http.Request) bool {
				if !isPush(r) || calm.Load() {
					return true
				}
				c.spoil(h, w, r)
				return false
			})
			hash := f.record(map[string]string{checks: done})
			m := f.remote()
			err := m.Push(t.Context(), hash)
			calm.Store(true)
			if c.landed && err != nil || !c.landed && !errors.Is(err, ErrUnreachable) {
				t.Errorf("push: %v", err)
			}
			on := (&fixture{t, bare}).git("rev-parse", "main")
			if (on == hash) != c.landed {
				t.Errorf("the remote has %s", on)
			}
			if err := m.Push(t.Context(), hash); err != nil {
				t.Errorf("push again: %v", err)
			}
			f.sound()
		})
	}
}

// TestPushIsSentAgain: curl sends a request again when the connection broke without an answer. The second one is refused
// because of the first.
func TestPushIsSentAgain(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	f, _ := overHTTP(t, func(h http.Handler, w http.ResponseWriter, r *http.Request) bool {
		if !isPush(r) || sent.Add(1) > 1 {
			return true
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		abort()
		return false
	})
	if err := f.remote().Push(t.Context(), f.record(map[string]string{checks: done})); err != nil {
		t.Errorf("push, sent %d times: %v", sent.Load(), err)
	}
}

// TestClaimGoesAway: a claim whose answer is lost is found, and one that never arrived is an error.
func TestClaimGoesAway(t *testing.T) {
	t.Parallel()
	var mode atomic.Value
	mode.Store("")
	f, _ := overHTTP(t, func(h http.Handler, w http.ResponseWriter, r *http.Request) bool {
		switch m := mode.Load(); {
		case m == "gone", m == "lost request" && isPush(r):
			abort()
		case m == "lost answer" && isPush(r):
			h.ServeHTTP(httptest.NewRecorder(), r)
			abort()
		}
		return true
	})
	m := f.remote()
	claim := []Claim{{"x", "a", time.Now().Add(time.Minute)}}
	mode.Store("gone")
	if _, err := m.Take(t.Context(), claim); !errors.Is(err, ErrUnreachable) {
		t.Errorf("take: %v", err)
	}
	if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("fetch: %v", err)
	}
	mode.Store("lost request")
	if refused, err := m.Take(t.Context(), claim); !errors.Is(err, ErrUnreachable) {
		t.Errorf("take without a request: %v, %v", refused, err)
	}
	mode.Store("lost answer")
	if refused, err := m.Take(t.Context(), claim); err != nil || len(refused) > 0 {
		t.Errorf("take without an answer: %v, %v", refused, err)
	}
	if lost, err := m.Renew(t.Context(), claim); err != nil || len(lost) > 0 {
		t.Errorf("renew without an answer: %v, %v", lost, err)
	}
	mode.Store("lost request")
	if lost, err := m.Renew(t.Context(), claim); !errors.Is(err, ErrUnreachable) || len(lost) > 0 {
		t.Errorf("renew without a request: %v, %v", lost, err)
	}
	mode.Store("")
	if err := m.Drop(t.Context(), []string{"x", "never held"}); err != nil {
		t.Errorf("drop: %v", err)
	}
	if tip, err := m.Fetch(t.Context()); err != nil || len(tip.Claims) > 0 {
		t.Errorf("%+v, %v", tip, err)
	}
}

// TestToken: GITHUB_TOKEN goes to the server that it is for, as a password, and nowhere else. No parallel tests: it is
// in the environment.
func TestToken(t *testing.T) {
	const token = "a-token-that-must-not-leak"
	var passwords atomic.Value
	passwords.Store("")
	demand := func(_ http.Handler, w http.ResponseWriter, r *http.Request) bool {
		_, password, ok := r.BasicAuth()
		passwords.Store(password)
		if ok && password == token {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return false
	}
	f, bare := overHTTP(t, demand)
	hash := f.record(map[string]string{checks: done})
	err := f.remote().Push(t.Context(), hash)
	if !errors.Is(err, ErrDenied) || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "GITHUB_TOKEN") ||
		strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without credentials: %v", err)
	}
	t.Setenv("GITHUB_TOKEN", token)
	if err := f.remote().Push(t.Context(), hash); !errors.Is(err, ErrDenied) || passwords.Load() == token {
		t.Errorf("to another server: %v, %q", err, passwords.Load())
	}
	stored := filepath.Join(t.TempDir(), "stored")
	f.git("config", "credential.helper", "store --file="+stored)
	url := f.git("remote", "get-url", "origin")
	t.Setenv("GITHUB_SERVER_URL", url[:strings.LastIndex(url, "/")])
	m := f.remote()
	if err := m.Push(t.Context(), hash); err != nil {
		t.Errorf("with the token: %v", err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
	if data, err := os.ReadFile(stored); err == nil {
		t.Errorf("a credential helper stored it: %s", data)
	}
	if args := strings.Join(m.config, " "); strings.Contains(args, token) || strings.Contains(tree(t, f.path(".git")), token) {
		t.Error("the token is in an argument or below .git")
	}
	f.git("remote", "set-url", "origin", strings.Replace(url, "http://", "http://me:"+token+"@", 1)+"-gone")
	if _, err := f.remote().Fetch(t.Context()); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("an address with a password: %v", err)
	}
}

// TestServerRules: what the server forbids is no race.
func TestServerRules(t *testing.T) {
	t.Parallel()
	hook := func(name, script string) func(*fixture) {
		return func(bare *fixture) {
			bare.write("hooks/"+name, "#!/bin/sh\n"+script+"\n")
			os.Chmod(bare.path("hooks/"+name), 0o755)
		}
	}
	for name, c := range map[string]struct {
		prepare func(bare *fixture)
		say     string
	}{
		"pre-receive": {hook("pre-receive", "echo main is protected >&2; exit 1"), "pre-receive hook declined): main is protected; let"},
		"update":      {hook("update", "test $1 != refs/heads/main"), "hook declined"},
		"checked out": {func(bare *fixture) { bare.git("config", "core.bare", "false") }, "currently checked out"},
		"hidden":      {func(bare *fixture) { bare.git("config", "receive.hideRefs", "refs/heads/main") }, "hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, bare := shared(t)
			hash := f.record(map[string]string{checks: done})
			c.prepare(&fixture{t, bare})
			err := f.remote().Push(t.Context(), hash)
			if !errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("push: %v; want ErrProtected with %q", err, c.say)
			}
			f.clean()
			f.sound()
		})
	}
}

// TestServerIsFull: a server that cannot store what is pushed may do so later, and says what it lacks.
func TestServerIsFull(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	f.git("config", "remote.origin.receivepack", "echo 'remote: no space left' >&2; ulimit -f 0; git-receive-pack")
	hash := f.record(map[string]string{checks: done})
	m := f.remote()
	claim := []Claim{{"x", "a", time.Now().Add(time.Minute)}}
	for what, err := range map[string]error{"push": m.Push(t.Context(), hash), "leave": m.PushPending(t.Context(), "1", hash)} {
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if refused, err := m.Take(t.Context(), claim); !errors.Is(err, ErrUnreachable) || len(refused) > 0 {
		t.Errorf("take: %v, %v", refused, err)
	}
	f.git("config", "--unset", "remote.origin.receivepack")
	if err := m.Push(t.Context(), hash); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	f.clean()
	f.sound()
}

// TestClaimsForbidden: a server that keeps reconcilers from their own references says so.
func TestClaimsForbidden(t *testing.T) {
	t.Parallel()
	f, _, bare := shared(t)
	b := &fixture{t, bare}
	b.write("hooks/update", "#!/bin/sh\ncase $1 in refs/heads/*) exit 0;; esac\nexit 1\n")
	os.Chmod(b.path("hooks/update"), 0o755)
	_, err := f.remote().Take(t.Context(), []Claim{{"x", "a", time.Now().Add(time.Minute)}})
	if !errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), "refs/reconcile/") {
		t.Errorf("take: %v", err)
	}
}

// TestPrePush: the user's pre-push hook speaks about commits of people, and not about those of reconcile.
func TestPrePush(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	f.write(".git/hooks/pre-push", "#!/bin/sh\necho the tests fail >&2\nexit 1\n")
	os.Chmod(f.path(".git/hooks/pre-push"), 0o755)
	_, m := f.adopt()
	if err := m.Push(t.Context(), f.record(map[string]string{checks: done})); err != nil {
		t.Fatal(err)
	}
	f.author("mine", map[string]string{"README.md": "mine\n"})
	_, m = f.adopt()
	err := m.Push(t.Context(), f.git("rev-parse", "HEAD"))
	if !errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), "pre-push hook") ||
		!strings.Contains(err.Error(), "the tests fail") {
		t.Errorf("push of a person's commit: %v", err)
	}
}

// TestSSH: ssh is asked not to ask, unless the user says how it is to be called. No parallel tests: it is in the
// environment.
func TestSSH(t *testing.T) {
	f, _, bare := shared(t)
	bin := &fixture{t, t.TempDir()}
	bin.write("ssh", "#!/bin/sh\necho \"$@\" >> "+bin.path("calls")+"\nfor last; do :; done\nexec sh -c \"$last\"\n")
	os.Chmod(bin.path("ssh"), 0o755)
	t.Setenv("PATH", bin.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	f.git("remote", "set-url", "origin", "ssh://someone@host.invalid"+bare)
	hash := f.record(map[string]string{checks: done})
	if err := f.remote().Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
	if calls := bin.read("calls"); !strings.Contains(calls, "BatchMode=yes") || !strings.Contains(calls, "someone@host.invalid") {
		t.Errorf("ssh %s", calls)
	}
	f.git("config", "core.sshCommand", bin.path("ssh")+" -o Mine=yes")
	if _, err := f.remote().Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := strings.Fields(bin.read("calls")); !strings.Contains(strings.Join(calls[len(calls)-8:], " "), "Mine=yes") {
		t.Errorf("ssh %s", calls)
	}
	bin.write("ssh", "#!/bin/sh\necho 'someone@host.invalid: Permission denied (publickey).' >&2\nexit 255\n")
	os.Chmod(bin.path("ssh"), 0o755)
	if _, err := f.remote().Fetch(t.Context()); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "ssh agent") {
		t.Errorf("no key: %v", err)
	}
}

func TestComplaint(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"": "", "one\ntwo\n": "one", "warning: x\nerror: y\nfatal: z\nfatal: w\n": "z", "a\nerror: y\n": "y",
		"fatal: unable to access 'https://me:se@cret@example.org/a/': no":          "unable to access 'https://example.org/a/': no",
		"fatal: 'https://tok@a.example/x' and ssh://git@b.example:22 and https://": "'https://a.example/x' and ssh://b.example:22 and https://",
	} {
		if got := complaint(said); got != want {
			t.Errorf("%q: %q; want %q", said, got, want)
		}
	}
}

package gitrepo

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shared makes a bare repository that has the fixture's branch, and returns the fixture with it as its origin, and a
// clone of it.
func shared(t *testing.T) (f, other *fixture, bare string) {
	f = newFixture(t)
	bare = resolved(t, t.TempDir())
	f.git("clone", "-q", "--bare", f.dir, bare)
	f.git("remote", "add", "origin", bare)
	return f, f.clone(bare), bare
}

// clone makes another work tree with a repository of its own.
func (f *fixture) clone(url string, args ...string) *fixture {
	f.Helper()
	other := &fixture{f.T, resolved(f.T, f.TempDir())}
	f.git(append(append([]string{"clone", "-q"}, args...), url, other.dir)...)
	other.git("config", "user.name", "Bea User")
	other.git("config", "user.email", "bea@example.org")
	other.git("config", "gc.auto", "0")
	return other
}

func (f *fixture) remote() *Remote {
	f.Helper()
	m, err := f.open().Remote(f.Context(), "", "")
	if err != nil {
		f.Fatal(err)
	}
	return m
}

func TestPushFetch(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	f.write(checks, done)
	hash := f.commit(f.open(), checks)
	m := f.remote()
	if err := m.Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
	tip, err := other.remote().Fetch(t.Context())
	if err != nil || tip.Head != hash {
		t.Fatalf("%+v, %v", tip, err)
	}
	other.write(checks, "{}\n")
	late := other.commit(other.open(), checks)
	if err := other.remote().Push(t.Context(), late); !errors.Is(err, ErrRefused) {
		t.Errorf("a push on top of an old branch: %v", err)
	}
	f.sound()
	other.sound()
}

func TestClaims(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	a, b := f.remote(), other.remote()
	until := time.Now().Add(time.Minute)
	refused, err := a.Take(t.Context(), []Claim{{"run/x", "a", until}, {"run/y", "a", until}})
	if err != nil || len(refused) > 0 {
		t.Fatalf("%v, %v", refused, err)
	}
	refused, err = b.Take(t.Context(), []Claim{{"run/x", "b", until}, {"run/z", "b", until}})
	if err != nil || len(refused) != 1 || refused["run/x"].Holder != "a" {
		t.Fatalf("%v, %v", refused, err)
	}
	if lost, err := a.Renew(t.Context(), []Claim{{"run/x", "a", until}}); err != nil || len(lost) > 0 {
		t.Fatalf("%v, %v", lost, err)
	}
	if err := a.Drop(t.Context(), []string{"run/x"}); err != nil {
		t.Fatal(err)
	}
	tip, err := b.Fetch(t.Context())
	if err != nil || len(tip.Claims) != 2 {
		t.Fatalf("%+v, %v", tip, err)
	}
	if refused, err = b.Take(t.Context(), []Claim{{"run/x", "b", until}}); err != nil || len(refused) > 0 {
		t.Fatalf("%v, %v", refused, err)
	}
}

// TestReservations: who has not seen the last reservation of another claims nothing, and a renewal keeps what is reserved.
func TestReservations(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	a, b := f.remote(), other.remote()
	until := time.Now().Add(time.Minute)
	want := func(key, holder string, seen int) []Reservation {
		return []Reservation{{Claim{key, holder, until}, json.RawMessage(`{"part":1}`), seen}}
	}
	fetch := func(m *Remote) Tip {
		t.Helper()
		tip, err := m.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return tip
	}
	one, two := fetch(a).Reserves, fetch(b).Reserves
	if refused, again, err := a.Reserve(t.Context(), want("run/x", "a", one)); err != nil || len(refused)+len(again) > 0 {
		t.Fatalf("%v, %v, %v", refused, again, err)
	}
	if refused, again, err := b.Reserve(t.Context(), want("run/y", "b", two)); err != nil || len(refused) > 0 || len(again) != 1 {
		t.Fatalf("the second one did not see the first: %v, %v, %v", refused, again, err)
	}
	if lost, err := a.Renew(t.Context(), []Claim{{"run/x", "a", until}}); err != nil || len(lost) > 0 {
		t.Fatalf("%v, %v", lost, err)
	}
	tip := fetch(b)
	if len(tip.Claims) != 1 || string(tip.Reserved["run/x"]) != `{"part":1}` || tip.Reserves == two {
		t.Fatalf("%+v", tip)
	}
	if refused, again, err := b.Reserve(t.Context(), want("run/y", "b", tip.Reserves)); err != nil || len(refused)+len(again) > 0 {
		t.Fatalf("%v, %v, %v", refused, again, err)
	}
	if refused, _, err := b.Reserve(t.Context(), want("run/x", "b", tip.Reserves)); err != nil || refused["run/x"].Holder != "a" {
		t.Fatalf("%v, %v", refused, err)
	}
	if refused, again, err := a.Reserve(t.Context(), want("run/z", "a", fetch(a).Reserves)); err != nil || len(refused)+len(again) > 0 {
		t.Fatalf("%v, %v, %v", refused, again, err)
	}
}

// TestSweepFetches: what killed processes left goes after a while. No parallel tests: the folder is in the environment.
func TestSweepFetches(t *testing.T) {
	tmp := &fixture{t, t.TempDir()}
	t.Setenv("TMPDIR", tmp.dir)
	t.Setenv("TMP", tmp.dir) // on Windows
	f, _, _ := shared(t)
	for _, name := range []string{"reconcile-fetch-old", "reconcile-fetch-new", "other"} {
		tmp.write(name+"/HEAD", "x")
	}
	long := time.Now().Add(-2 * abandonedFetch)
	for _, name := range []string{"reconcile-fetch-old", "other"} {
		if err := os.Chtimes(tmp.path(name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.remote().Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(tmp.path("*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range left {
		left[i] = filepath.Base(p)
	}
	f.equal("left", strings.Join(left, " "), "other reconcile-fetch-new")
}

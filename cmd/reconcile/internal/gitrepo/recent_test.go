package gitrepo

import (
	"os"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestReopen: what a repository has read is known when it is opened again, what has changed since is read anew, and nothing is
// known of another repository at the same place.
func TestReopen(t *testing.T) {
	f := newFixture(t)
	old := f.git("rev-parse", "HEAD")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.path(".git/config"), past, past); err != nil {
		t.Fatal(err)
	}
	again := func(last *Repo) *Repo {
		r, err := ReopenToCommit(f.dir, last)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	name := func(r *Repo) string {
		c, err := loadConfig(r.layout, "")
		if err != nil {
			t.Fatal(err)
		}
		v, _ := c.get(t.Context(), "user.name")
		return v
	}
	r := again(nil)
	if _, err := r.TreeOf(t.Context(), old); err != nil || name(r) != "Ada User" {
		t.Fatal(name(r), err)
	}
	next := again(r)
	if _, ok := next.recent.configs.Load(f.path(".git/config")); !ok || next.recent != r.recent {
		t.Error("what was read is not known any more")
	}
	f.git("config", "user.name", "Bob User") // as long as the other
	if got := name(next); got != "Bob User" {
		t.Errorf("the name is %s after it was changed", got)
	}
	if err := os.RemoveAll(f.path(".git")); err != nil {
		t.Fatal(err)
	}
	f.git("init", "-q", "-b", "main")
	if _, err := again(next).TreeOf(t.Context(), old); err == nil {
		t.Error("a repository made anew has a tree of the former one")
	}
}

// TestRecentIsBounded: what is kept never exceeds its room, and what comes later is kept.
func TestRecentIsBounded(t *testing.T) {
	r := new(recent)
	kept := func() (n int) {
		r.objects.Range(func(_, data any) bool { n += len(data.([]byte)); return true })
		return n
	}
	for i := range 100 {
		o := newObject(plumbing.TreeObject, []byte{byte(i), 99: 0})
		r.add(objectName{o.kind, o.hash}, make([]byte, recentRoom/10))
		if _, ok := r.object(objectName{o.kind, o.hash}); !ok || kept() > recentRoom {
			t.Fatalf("object %d is kept: %t; %d bytes are", i, ok, kept())
		}
	}
}

// TestSettled: a time without fractions may be of a file system that has none.
func TestSettled(t *testing.T) {
	at := time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		modified time.Time
		after    time.Duration
		want     bool
	}{{at, time.Second, false}, {at, 3 * time.Second, true}, {at.Add(time.Millisecond), 50 * time.Millisecond, false},
		{at.Add(time.Millisecond), 200 * time.Millisecond, true}, {at, -time.Hour, false}} {
		if got := settled(c.modified, c.modified.Add(c.after)); got != c.want {
			t.Errorf("settled %v after %v: %t", c.after, c.modified, got)
		}
	}
}

package share

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// TestHealthOfARemoteThatTakesNothing reads in between what cannot be written: a run gives up all the same, and does not
// say that the remote is back before it is.
func TestHealthOfARemoteThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		r := &health{name: "origin/main", warn: func(text string) { said = append(said, text) }}
		full := fmt.Errorf("no space left: %w", gitrepo.ErrUnreachable)
		tries := 1
		for start := time.Now(); r.retry(full) && time.Since(start) < 2*claimTimeout; tries++ {
			r.observe(reading, nil)
			time.Sleep(10 * time.Second)
		}
		if tries != 7 || len(said) != 1 {
			t.Errorf("%d tries, said %q", tries, said)
		}
		r.observe(writing, nil)
		if len(said) != 2 || !slices.Contains(said, "origin/main can be reached again") || !r.retry(full) {
			t.Errorf("said %q", said)
		}
	})
}

// sharedBy are two clones of a hub, as shares without a loop.
func sharedBy(t *testing.T) (dir string, open func(clone string) *Share) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "--bare", "-b", "main", "hub.git")
	for _, clone := range []string{"a", "b"} {
		git("clone", "-q", "hub.git", clone)
		git("-C", clone, "symbolic-ref", "HEAD", "refs/heads/main")
	}
	git("-C", "a", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "a", "push", "-q", "origin", "main")
	return dir, func(clone string) *Share {
		t.Helper()
		c := tree.Config{Dir: filepath.Join(dir, clone), Now: time.Now, Getenv: os.Getenv}
		store, err := c.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		repo, err := gitrepo.OpenToCommit(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		remote, err := repo.Remote(t.Context(), "origin", "main")
		if err != nil {
			t.Fatal(err)
		}
		warn := func(text string) { t.Error("warned:", text) }
		committer := commits.New(commits.Options{Dir: c.Dir, Store: store, Now: c.Now, Warn: warn}, repo)
		return newShare(Options{Dir: c.Dir, Store: store, Settings: store.Settings(), Commits: committer, Warn: warn}, remote)
	}
}

// TestClaimsAreWatchedOnce: the next run on a tree goes on to count where the one before it ended, but not on another
// machine, nor from what cannot be read.
func TestClaimsAreWatchedOnce(t *testing.T) {
	t.Parallel()
	if _, ok := uptime(); !ok && runtime.GOOS != "linux" {
		t.Skip("this system has no clock that two processes share")
	}
	dir, open := sharedBy(t)
	until := time.Now().Add(time.Hour)
	if _, err := open("a").remote.Take(t.Context(), []gitrepo.Claim{{Key: "x", Holder: "a", Expires: until}}); err != nil {
		t.Fatal(err)
	}
	ends := func() time.Time {
		t.Helper()
		tip, err := open("b").fetchTip(t.Context(), false)
		if err != nil || len(tip.Claims) != 1 {
			t.Fatal(tip.Claims, err)
		}
		return tip.Claims[0].Expires
	}
	first := ends()
	path := filepath.Join(dir, "b", sightingsPath)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends()
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, data) {
		t.Errorf("seen again: %s; before: %s", again, data)
	}
	var was sightings
	if err := json.Unmarshal(data, &was); err != nil || len(was.Seen) != 1 {
		t.Fatal(err, was)
	}
	was.Seen[0].Since -= 30 * time.Minute // so long ago
	write := func(is sightings) {
		data, err := json.Marshal(is)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(was)
	if early := first.Sub(ends()); early < 20*time.Minute || early > 30*time.Minute {
		t.Errorf("waits %s less than at first", early)
	}
	was.Boot = "of another machine"
	write(was)
	if ends().Before(first) {
		t.Error("believes what was seen on another machine")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ends().Before(first) {
		t.Error("believes what cannot be read")
	}
}

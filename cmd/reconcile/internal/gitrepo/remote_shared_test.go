package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"reconcile.dev/reconcile/state/lock"
)

const agents = "state/agent-status.json"

// beside are the owners of a fixture in which another program writes agents, too; join is asked what the file is to hold.
func beside(f *fixture, join func(v Versions) string) Owners {
	f.Helper()
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { root.Close() })
	return Owners{
		Of: func(p string) Ownership {
			if p == agents {
				return Shared
			}
			return ourFiles(p)
		},
		Lock: func(ctx context.Context, p string) (*lock.Lock, error) {
			return lock.Acquire(ctx, root, p, lock.Options{})
		},
		Join: func(p string, v Versions) ([]byte, error) {
			if p != agents {
				return nil, fmt.Errorf("asked of %s", p)
			}
			return []byte(join(v)), nil
		},
	}
}

// parted are clones that both have agents from base; theirs is what is on the remote by now.
func parted(t *testing.T, base, theirs string) (f, other *fixture, tip Tip, m *Remote) {
	t.Helper()
	f, other, _ = shared(t)
	f.record(map[string]string{agents: base})
	f.push()
	other.git("pull", "-q", "origin", "main")
	other.record(map[string]string{agents: theirs, checks: done})
	other.push()
	m = f.remote()
	tip, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f, other, tip, m
}

// TestAdoptCarriesWhatAnotherProgramWrites: between our look at the remote and the file's being replaced another program
// writes it, with the lock or without. What it wrote is united with what the remote has, and is a change that is to be
// committed. Where the file has an owner that does not unite it, the mutant, it is lost.
func TestAdoptCarriesWhatAnotherProgramWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		writes []string // what it writes each time that it is its turn
		asked  string   // how often what is there was united
		mutant bool
	}{
		{"nothing", nil, "1", false},
		{"before the lock is taken", []string{"base, own\n"}, "1", false},
		{"without a lock", []string{"base, own\n", "base, own, late\n"}, "2", false},
		{"mutant", []string{"base, own\n"}, "0", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, _, tip, m := parted(t, "base\n", "base, theirs\n")
			writes := c.writes
			another := func() {
				if len(writes) > 0 {
					f.write(agents, writes[0])
					writes = writes[1:]
				}
			}
			another()
			asked := 0
			owners := beside(f, func(v Versions) string {
				asked++
				if string(v.Base) != "base\n" || string(v.Next) != "base, theirs\n" || string(v.There) != f.read(agents) {
					t.Errorf("asked of %q %q %q", v.Base, v.There, v.Next)
				}
				another()
				return strings.TrimSpace(string(v.Next)) + strings.TrimPrefix(string(v.There), "base")
			})
			if c.mutant {
				owners.Of = ourFiles
			}
			got, err := m.Adopt(t.Context(), tip, owners)
			if err != nil || !got.Moved || got.Warning != "" {
				t.Fatalf("%+v, %v", got, err)
			}
			want, status := "base, theirs\n", ""
			if n := len(c.writes); n > 0 && !c.mutant {
				want, status = strings.Replace(c.writes[n-1], "base", "base, theirs", 1), " M "+agents
			}
			f.equal("agents", f.read(agents), want)
			f.equal("asked", fmt.Sprint(asked), c.asked)
			f.equal("HEAD", f.git("rev-parse", "HEAD"), tip.Head)
			f.equal("status", f.git("status", "--porcelain", "--untracked-files=no"), status)
			f.equal("a status", strings.TrimSpace(f.read(checks)), strings.TrimSpace(done))
			if left, err := os.ReadDir(f.path("state")); err != nil || strings.Contains(fmt.Sprint(left), ".lock") {
				t.Errorf("left in state: %v, %v", left, err)
			}
			f.sound()
		})
	}
}

// TestAdoptHoldsTheLock: while it is decided what a shared file is to hold, nobody else gets its lock, and while somebody
// else has it, nothing is changed.
func TestAdoptHoldsTheLock(t *testing.T) {
	t.Parallel()
	f, _, tip, m := parted(t, "base\n", "theirs\n")
	head := f.git("rev-parse", "HEAD")
	try := func(o Owners) error {
		root, err := os.OpenRoot(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		l, err := lock.Acquire(t.Context(), root, agents, lock.Options{Tries: 1})
		if err != nil {
			return err
		}
		defer l.Release() //nolint:errcheck // it is this test's
		o.Lock = func(ctx context.Context, p string) (*lock.Lock, error) {
			return lock.Acquire(ctx, root, p, lock.Options{Tries: 1})
		}
		_, err = m.Adopt(t.Context(), tip, o)
		return err
	}
	var held error
	owners := beside(f, func(v Versions) string {
		held = try(Owners{})
		return string(v.Next)
	})
	if err := try(owners); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("somebody else has the lock: %v", err)
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
	f.equal("agents", f.read(agents), "base\n")
	if _, err := m.Adopt(t.Context(), tip, owners); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(held, lock.ErrBusy) {
		t.Errorf("another program got the lock meanwhile: %v", held)
	}
	f.equal("agents", f.read(agents), "theirs\n")
	f.equal("status", f.git("status", "--porcelain", "--untracked-files=no"), "")
	f.sound()
}

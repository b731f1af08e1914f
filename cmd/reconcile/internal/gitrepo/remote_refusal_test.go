package gitrepo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// obstacles keep the remote from writing a reference although nobody else changes it.
var obstacles = map[string]func(b *fixture, ref string) (remove func()){
	"lock": func(b *fixture, ref string) func() {
		b.write(ref+".lock", "")
		return func() { b.remove(ref + ".lock") }
	},
	"name": func(b *fixture, ref string) func() {
		b.git("update-ref", "refs/reconcile", "main")
		return func() { b.git("update-ref", "-d", "refs/reconcile") }
	},
}

// TestRefusalIsNoRace: what the remote cannot write is an error with its words, and no lost race, on each way to a remote.
func TestRefusalIsNoRace(t *testing.T) {
	for way, reach := range map[string]func(t *testing.T, f *fixture, bare string){
		"file": func(*testing.T, *fixture, string) {},
		"http": func(t *testing.T, f *fixture, bare string) {
			f.git("remote", "set-url", "origin", gitServer(t, filepath.Dir(bare), nil)+filepath.Base(bare))
		},
		"ssh": func(t *testing.T, f *fixture, bare string) {
			bin := &fixture{t, t.TempDir()}
			bin.write("ssh", "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n")
			if err := os.Chmod(bin.path("ssh"), 0o755); err != nil {
				t.Fatal(err)
			}
			f.git("remote", "set-url", "origin", "ssh://someone@host.invalid"+bare)
			f.git("config", "core.sshCommand", bin.path("ssh"))
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for name, block := range obstacles {
				f, other, bare := shared(t)
				reach(t, f, bare)
				m, b := f.remote(), &fixture{t, bare}
				until := time.Now().Add(time.Minute)
				remove := block(b, claimRef("x"))
				refused, err := m.Take(t.Context(), []Claim{{"x", "a", until}})
				if !errors.Is(err, ErrUnwritable) || !errors.Is(err, ErrUnreachable) || len(refused) > 0 ||
					!strings.Contains(err.Error(), "cannot lock ref") {
					t.Errorf("%s: take: %v, %v", name, refused, err)
				}
				remove()
				if refused, err := m.Take(t.Context(), []Claim{{"x", "a", until}}); err != nil || len(refused) > 0 {
					t.Errorf("%s removed: take: %v, %v", name, refused, err)
				}
				if refused, err := other.remote().Take(t.Context(), []Claim{{"x", "b", until}}); err != nil || refused["x"].Holder != "a" {
					t.Errorf("%s removed: a claim that somebody has: %v, %v", name, refused, err)
				}
			}
			f, other, bare := shared(t)
			reach(t, f, bare)
			hash := f.record(map[string]string{checks: done})
			remove := obstacles["lock"](&fixture{t, bare}, "refs/heads/main")
			m := f.remote()
			err := m.Push(t.Context(), hash)
			if !errors.Is(err, ErrUnwritable) || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "main.lock") {
				t.Errorf("push: %v", err)
			}
			remove()
			if err := m.Push(t.Context(), hash); err != nil {
				t.Errorf("push once the lock is gone: %v", err)
			}
			if err := other.remote().Push(t.Context(), other.record(map[string]string{checks: "{}\n"})); !errors.Is(err, ErrRefused) {
				t.Errorf("push that lost the race: %v", err)
			}
		})
	}
}

// TestTicketsOfTheKilledAreRemoved: a ticket that nobody renews is removed by a later process, which knows when one before it
// saw it first; one that is renewed stays.
func TestTicketsOfTheKilledAreRemoved(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	b := &fixture{t, bare}
	tickets := func() string { return b.git("for-each-ref", "--format=%(refname)", waitingRefs) }
	killed := other.remote()
	killed.enqueue(t.Context())
	renewed := other.remote()
	renewed.enqueue(t.Context())
	now := &clock{noon}
	first := f.remote().at(now)
	if _, err := first.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.SweepTickets(t.Context())
	if got := strings.Fields(tickets()); len(got) != 2 {
		t.Fatalf("tickets at first sight: %v", got)
	}
	now.now = now.now.Add(staleTicket + time.Second)
	renewed.waiting.number++ // as one who lost again
	renewed.enqueue(t.Context())
	second := f.remote().at(now)
	second.RestoreSightings(first.Sightings())
	if _, err := second.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.SweepTickets(t.Context())
	f.equal("tickets", tickets(), waitingRefs+renewed.waiting.id)
}

// TestTicketsThatMissTheirTurnAreRemoved: a process that waited for a killed one in vain removes its ticket, so that no other one, which
// may be a clone that knows nothing of earlier sightings, waits for it again. A holder that was only slow gets its place back.
func TestTicketsThatMissTheirTurnAreRemoved(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	b := &fixture{t, bare}
	slow := other.remote()
	slow.enqueue(t.Context())
	ticket := b.git("for-each-ref", waitingRefs)
	now := &clock{noon}
	m := f.remote().at(now)
	fetch := func(after time.Duration, want int) {
		t.Helper()
		now.now = now.now.Add(after)
		tip, err := m.Fetch(t.Context())
		if err != nil || len(tip.Tickets) != want {
			t.Fatalf("tickets %v, want %d: %v", tip.Tickets, want, err)
		}
		m.SweepTickets(t.Context())
	}
	fetch(0, 1)
	f.equal("tickets", b.git("for-each-ref", waitingRefs), ticket)
	fetch(time.Minute, 0)
	f.equal("tickets", b.git("for-each-ref", waitingRefs), "")
	slow.waiting.live = false
	if _, err := slow.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow.enqueue(t.Context()) // refused: it is not as it was; the next fetch says so
	slow.enqueue(t.Context())
	f.equal("tickets", b.git("for-each-ref", waitingRefs), ticket)
}

// TestServerHangs: a server that accepts a connection and never answers counts as unreachable when the time of the caller is
// over, not as an error of the command; a caller that gave up itself gets its own error.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	f.git("config", "remote.origin.receivepack", "cat > /dev/null; :")
	m := f.remote()
	over, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := m.Take(over, []Claim{{"x", "a", time.Now().Add(time.Minute)}})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "it did not answer in time") {
		t.Errorf("take: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.unreachable(gone, answer{}, gone.Err()); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("canceled: %v", err)
	}
}

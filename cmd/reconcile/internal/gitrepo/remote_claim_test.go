package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// clock is a time that a test sets.
type clock struct{ now time.Time }

func (m *Remote) at(c *clock) *Remote {
	m.now = func() time.Time { return c.now }
	return m
}

// TestClaimExpires: a claim that nobody renews is taken over, and one that is renewed is not, whatever the clocks say.
func TestClaimExpires(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	wrong, right := &clock{noon.AddDate(10, 0, 0)}, &clock{noon} // the holder lives in the future
	a, b := f.remote().at(wrong), other.remote().at(right)
	take := func(m *Remote, holder string, c *clock) (Claim, bool) {
		t.Helper()
		if _, err := m.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused, err := m.Take(t.Context(), []Claim{{"x", holder, c.now.Add(time.Minute)}})
		if err != nil {
			t.Fatal(err)
		}
		return refused["x"], len(refused) == 0
	}
	if _, ok := take(a, "a", wrong); !ok {
		t.Fatal("a did not get a free claim")
	}
	for range 3 { // renewed in time
		c, ok := take(b, "b", right)
		if ok || c.Holder != "a" || !c.Expires.Equal(right.now.Add(time.Minute)) {
			t.Errorf("b: %v, %v; want a's claim, for a minute from %v", ok, c, right.now)
		}
		right.now, wrong.now = right.now.Add(50*time.Second), wrong.now.Add(50*time.Second)
		if lost, err := a.Renew(t.Context(), []Claim{{"x", "a", wrong.now.Add(time.Minute)}}); err != nil || len(lost) > 0 {
			t.Fatalf("renew: %v, %v", lost, err)
		}
	}
	if c, ok := take(b, "b", right); ok {
		t.Errorf("b took %v at once", c)
	}
	right.now = right.now.Add(61 * time.Second)
	if c, ok := take(b, "b", right); !ok {
		t.Errorf("b did not get an expired claim: %v", c)
	}
	lost, err := a.Renew(t.Context(), []Claim{{"x", "a", wrong.now.Add(time.Minute)}})
	if err != nil || len(lost) != 1 || lost[0] != "x" {
		t.Errorf("a, robbed: %v, %v", lost, err)
	}
	if lost, err = a.Renew(t.Context(), []Claim{{"never taken", "a", wrong.now}}); err != nil || len(lost) != 1 {
		t.Errorf("renew what is not held: %v, %v", lost, err)
	}
	if err := a.Drop(t.Context(), []string{"x"}); err != nil {
		t.Errorf("drop what somebody else has: %v", err)
	}
	if tip, err := b.Fetch(t.Context()); err != nil || len(tip.Claims) != 1 || tip.Claims[0].Holder != "b" {
		t.Errorf("in the end: %v, %v", tip.Claims, err)
	}
}

// TestClaimSeenBefore: a process goes on counting where the one before it ended, as long as the claim is the same.
func TestClaimSeenBefore(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	now := &clock{noon}
	a, b := f.remote().at(now), other.remote().at(now)
	until := func() []Claim { return []Claim{{"x", "a", now.now.Add(time.Minute)}} }
	if refused, err := a.Take(t.Context(), until()); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	expires := func(m *Remote) time.Duration {
		t.Helper()
		tip, err := m.Fetch(t.Context())
		if err != nil || len(tip.Claims) != 1 {
			t.Fatal(tip.Claims, err)
		}
		return tip.Claims[0].Expires.Sub(now.now)
	}
	expires(b)
	was := b.Sightings()
	if len(was) != 1 || len(a.Sightings()) != 0 {
		t.Errorf("b saw %v, a %v, whose claim it is", was, a.Sightings())
	}
	now.now = now.now.Add(50 * time.Second)
	next := other.remote().at(now)
	next.RestoreSightings(was)
	if left, anew := expires(next), expires(other.remote().at(now)); left != 10*time.Second || anew != time.Minute {
		t.Errorf("left: %s for who was there before, %s for who is new", left, anew)
	}
	if lost, err := a.Renew(t.Context(), until()); err != nil || len(lost) > 0 {
		t.Fatal(lost, err)
	}
	if left := expires(next); left != time.Minute {
		t.Errorf("left once it was renewed: %s", left)
	}
	ahead := other.remote().at(now)
	ahead.RestoreSightings([]Sighting{{was[0].Ref, was[0].Hash, now.now.Add(time.Hour)}})
	if left := expires(ahead); left != time.Minute {
		t.Errorf("left with a sighting of the future: %s", left)
	}
}

// TestClaimRace: of two that find an expired claim, one gets it.
func TestClaimRace(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	c := &clock{noon}
	a, b := f.remote().at(c), other.remote().at(c)
	want := func(holder string) []Claim { return []Claim{{"x", holder, c.now.Add(time.Minute)}} }
	if _, err := f.remote().at(c).Take(t.Context(), want("dead")); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Remote{a, b} {
		if _, err := m.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.now = c.now.Add(2 * time.Minute)
	first, err := a.Take(t.Context(), want("a"))
	second, err2 := b.Take(t.Context(), want("b"))
	if err != nil || err2 != nil || len(first) != 0 || second["x"].Holder != "a" {
		t.Errorf("%v, %v; %v, %v", first, err, second, err2)
	}
	if again, err := a.Take(t.Context(), want("a")); err != nil || len(again) > 0 {
		t.Errorf("taken twice by one: %v, %v", again, err)
	}
}

// TestClaimsOfStrangers: whatever stands where a claim should be is respected for a while, and harms nobody.
func TestClaimsOfStrangers(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"fetched as files": "1000", "fetched as a pack": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claimsOfStrangers(t, limit)
		})
	}
}

func claimsOfStrangers(t *testing.T, unpackLimit string) {
	f, other, _ := shared(t)
	other.git("config", "fetch.unpackLimit", unpackLimit)
	bad := map[string]string{
		"no JSON":        "hello",
		"empty":          "",
		"another's name": `{"key":"elsewhere","holder":"a","seconds":5}`,
		"no holder":      `{"key":"no holder","seconds":5}`,
		"huge":           strings.Repeat("x", textLimit+1),
	}
	for key, text := range bad {
		f.git("push", "-q", "origin", f.gitInput(text, "hash-object", "-w", "--stdin")+":"+claimRef(key))
	}
	long, _ := json.Marshal(claimText{Key: "long", Holder: "a", Seconds: math.MaxInt})
	f.git("push", "-q", "origin", f.gitInput(string(long), "hash-object", "-w", "--stdin")+":"+claimRef("long"))
	f.git("push", "-q", "origin", "HEAD:"+claimRef("a commit"))
	c := &clock{noon}
	m := other.remote().at(c)
	tip, err := m.Fetch(t.Context())
	if err != nil || len(tip.Claims) != len(bad)+2 {
		t.Fatalf("%d claims, %v", len(tip.Claims), err)
	}
	for key := range bad {
		refused, err := m.Take(t.Context(), []Claim{{key, "b", c.now.Add(time.Minute)}})
		if got := refused[key]; err != nil || len(refused) != 1 || !got.Expires.Equal(noon.Add(unreadableClaim)) {
			t.Errorf("%s: %v, %v", key, refused, err)
		}
	}
	c.now = c.now.Add(unreadableClaim + time.Second)
	for key := range bad {
		if refused, err := m.Take(t.Context(), []Claim{{key, "b", c.now.Add(time.Minute)}}); err != nil || len(refused) > 0 {
			t.Errorf("%s, later: %v, %v", key, refused, err)
		}
	}
	if refused, err := m.Take(t.Context(), []Claim{{"long", "b", c.now}}); err != nil || !refused["long"].Expires.Equal(noon.Add(longestClaim*time.Second)) {
		t.Errorf("one of ages: %v, %v", refused, err)
	}
}

func TestClaimRefs(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, key := range []string{"dag/checks/build-1", "dag-checks-build-1", "DAG/checks/build-1", "", "..", "x.lock", "@{", "a b~^:?*[\\",
		strings.Repeat("long", 100), "é", "\x00\n"} {
		ref := claimRef(key)
		if !validRef(ref) || len(ref) > 130 || seen[strings.ToLower(ref)] != "" {
			t.Errorf("%q: %s (also of %q)", key, ref, seen[strings.ToLower(ref)])
		}
		seen[strings.ToLower(ref)] = key
	}
}

// TestTickets: who lost goes before who comes anew, a ticket is void once its commit is on the branch, and one whose
// holder is gone holds nobody up for long.
func TestTickets(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	c := &clock{noon}
	a, b := f.remote().at(c), other.remote().at(c)
	a.jitter, b.jitter = func() float64 { return 0 }, func() float64 { return 0 }
	first, late := f.record(map[string]string{checks: done}), other.record(map[string]string{checks: "{}\n"})
	if err := a.Push(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := b.Push(t.Context(), late); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	tip, err := b.Turn(t.Context()) // it lost, and takes a ticket
	if err != nil || fmt.Sprint(tip.Tickets) != fmt.Sprintf("[{%s 1}]", b.waiting.id) {
		t.Fatalf("%+v, %v", tip.Tickets, err)
	}
	if tip, err = a.Fetch(t.Context()); err != nil || len(tip.Tickets) != 1 {
		t.Fatalf("%+v, %v", tip.Tickets, err)
	}
	a.mu.Lock()
	if n := a.ticketsAhead(tip.Tickets); n != 1 || a.waiting.number != 2 {
		t.Errorf("%d are before a, which has number %d", n, a.waiting.number)
	}
	a.mu.Unlock()
	if _, err := b.pull(other); err != nil {
		t.Fatal(err)
	}
	if err := b.Push(t.Context(), other.record(map[string]string{checks: "{}\n"})); err != nil {
		t.Fatal(err)
	}
	if tip, err = a.Fetch(t.Context()); err != nil || len(tip.Tickets) != 0 {
		t.Errorf("a void ticket counts: %+v, %v", tip.Tickets, err)
	}
	// Somebody takes a ticket, though the answer to its last push got lost, and dies.
	b.waiting.lost, b.waiting.hash = 1, ""
	b.enqueue(t.Context())
	if _, err := b.Fetch(t.Context()); err != nil || b.waiting.live {
		t.Fatal(err)
	}
	b.enqueue(t.Context())
	b.enqueue(t.Context())
	if tip, err = a.Fetch(t.Context()); err != nil || len(tip.Tickets) != 1 {
		t.Fatalf("%+v, %v", tip.Tickets, err)
	}
	c.now = c.now.Add(time.Minute)
	if tip, err = a.Fetch(t.Context()); err != nil || len(tip.Tickets) != 0 {
		t.Errorf("a dead ticket counts: %+v, %v", tip.Tickets, err)
	}
	c.now = c.now.Add(staleTicket)
	if _, err := a.pull(f); err != nil {
		t.Fatal(err)
	}
	if err := a.Push(t.Context(), f.record(map[string]string{checks: "again\n"})); err != nil {
		t.Fatal(err)
	}
	f.equal("references", (&fixture{t, bare}).git("for-each-ref", "refs/reconcile"), "")
}

// TestTurnEnds: a context ends the wait, and a server that takes no tickets is no obstacle.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	m := other.remote()
	m.waiting.lost, m.waiting.number = 1, 1
	m.enqueue(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	late := f.remote()
	late.jitter = func() float64 {
		cancel()
		return 1
	}
	if _, err := late.Turn(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	(&fixture{t, bare}).git("config", "receive.hideRefs", "refs/reconcile")
	mute := f.remote()
	mute.waiting.lost, mute.jitter = 1, func() float64 { return 0 }
	if _, err := mute.Turn(t.Context()); err != nil || !mute.waiting.noTickets {
		t.Errorf("mute %v: %v", mute.waiting.noTickets, err)
	}
}

package gitrepo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Claim names the process that performs an effect. It is stored on the remote as refs/reconcile/claims/<key>.
type Claim struct {
	Key    string // of the effect; "" if the claim on the remote is unreadable
	Holder string // a name unique to the process; "" if the claim is unreadable
	// Expires is when the claim ends unless it is renewed. Clocks of machines differ, so the remote stores a duration,
	// counted from when this Remote first saw the claim in its present form: a wrong clock neither steals a claim nor
	// waits forever, and a new process waits once for the whole duration.
	Expires time.Time
}

// claimText is a claim as stored on the remote.
type claimText struct {
	Key     string `json:"key"`
	Holder  string `json:"holder"`
	Seconds int    `json:"seconds"`
	Beat    int    `json:"beat"` // differs with each renewal
	// Reserve is what a Reservation reserves.
	Reserve json.RawMessage `json:"reserve,omitempty"`
}

// Bounds, in seconds, on how long a claim is respected without renewal, and how long an unreadable one is
// respected.
const (
	shortestClaim   = 1
	longestClaim    = 24 * 60 * 60
	unreadableClaim = 10 * time.Minute
)

// claimRef returns the reference of a key: readable, and different for different keys, also on file systems that
// ignore case.
func claimRef(key string) string {
	legible := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(key))
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s%.80s-%x", claimRefs, legible, sum[:12])
}

// claimOf returns the last seen claim on a reference, or the zero value. m.mu is held.
func (m *Remote) claimOf(ref string) Claim {
	s, ok := m.seen[ref]
	if !ok {
		return Claim{}
	}
	var text claimText
	if json.Unmarshal(s.text, &text) != nil || claimRef(text.Key) != ref || text.Holder == "" {
		return Claim{Expires: s.since.Add(unreadableClaim)}
	}
	lasts := time.Duration(min(max(text.Seconds, shortestClaim), longestClaim)) * time.Second
	return Claim{Key: text.Key, Holder: text.Holder, Expires: s.since.Add(lasts)}
}

// Sighting records since when a claim or a ticket of another process is unchanged. Each claim, ticket and renewal
// has a different hash.
type Sighting struct {
	Ref   string // on the remote
	Hash  string
	Since time.Time // by this process's clock
}

// Sightings returns what the last Fetch has seen of others on the remote, as a Sighting by reference: its hash, and
// since when. With them the next process on this tree need not wait for the whole duration of a claim or a ticket
// again. See RestoreSightings.
func (m *Remote) Sightings() []Sighting {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Sighting
	for ref, s := range m.seen {
		if m.held[ref] != s.hash && ref != waitingRefs+m.waiting.id {
			out = append(out, Sighting{ref, s.hash, s.since})
		}
	}
	slices.SortFunc(out, func(a, b Sighting) int { return strings.Compare(a.Ref, b.Ref) })
	return out
}

// RestoreSightings adopts the sightings of an earlier process. Call it before the first Fetch, with times that are
// never too early: a process must wait for a claim before it takes it over.
func (m *Remote) RestoreSightings(before []Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earlier = map[string]Sighting{}
	for _, s := range before {
		m.earlier[s.Ref] = s
	}
}

// write creates a blob of a claim or ticket, and returns its hash. Each blob is unique.
func (m *Remote) write(ctx context.Context, text any) (string, []byte, error) {
	data, err := json.Marshal(text)
	if err != nil {
		return "", nil, err
	}
	out, err := m.git.run(ctx, call{stdin: data}, "hash-object", "-w", "-t", "blob", "--stdin")
	return strings.TrimSpace(string(out)), data, err
}

// claimRequest is a claim to push.
type claimRequest struct {
	Claim
	update refUpdate
	text   []byte
	answer refAnswer // why it was refused
}

// Take pushes claims of keys to the remote for their holders until they expire, all at once, and returns the refused
// ones. Keys that others hold unexpired are returned with their present claims. A claim that the same holder already
// has is renewed. After an error the caller must perform nothing; claims that succeeded nevertheless expire. Call Fetch
// before.
func (m *Remote) Take(ctx context.Context, claims []Claim) (refused map[string]Claim, err error) {
	refused = map[string]Claim{}
	var wants []claimRequest
	for _, c := range claims {
		ref := claimRef(c.Key)
		m.mu.Lock()
		now := m.claimOf(ref)
		old := m.seen[ref].hash
		if held := m.held[ref]; held != "" && now.Holder == c.Holder {
			old = held
		}
		m.mu.Unlock()
		if old != "" && now.Holder != c.Holder && m.now().Before(now.Expires) {
			refused[c.Key] = now
			continue
		}
		w, err := m.newClaimRequest(ctx, c, old, nil)
		if err != nil {
			return refused, err
		}
		wants = append(wants, w)
	}
	for try := 0; len(wants) > 0; try++ {
		if try > 0 {
			if err := m.afterRefusal(ctx, try-1); err != nil {
				return refused, err
			}
		}
		failed, unknown, err := m.pushClaims(ctx, wants)
		if err != nil || len(failed) == 0 {
			return refused, err
		}
		if _, err := m.Fetch(ctx); err != nil { // find out who holds it
			return refused, err
		}
		if wants = m.classifyFailed(failed, refused); len(wants) > 0 && unknown != nil {
			return refused, unknown
		}
		if len(wants) > 0 && try == refusals {
			return refused, wants[0].answer.err(m.String(), forShared)
		}
	}
	return refused, nil
}

// classifyFailed determines why claims were not taken: those that others hold go to refused. left are those that
// were not written although the reference did not change.
func (m *Remote) classifyFailed(failed []claimRequest, refused map[string]Claim) (left []claimRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range failed {
		switch there := m.seen[w.update.ref].hash; {
		case there == w.update.value: // the answer was lost, the claim succeeded
			m.held[w.update.ref] = there
		case there == w.update.old && (w.answer.unclear || !w.answer.refused):
			left = append(left, w)
		case there == "": // another process was first, and is done already
			refused[w.Key] = Claim{Key: w.Key, Expires: m.now()}
		default:
			refused[w.Key] = m.claimOf(w.update.ref)
		}
	}
	return left
}

// newClaimRequest prepares a claim that replaces old.
func (m *Remote) newClaimRequest(ctx context.Context, c Claim, old string, reserve json.RawMessage) (claimRequest, error) {
	m.mu.Lock()
	m.beat++
	beat := m.beat
	m.mu.Unlock()
	seconds := int((c.Expires.Sub(m.now()) + time.Second - 1) / time.Second)
	hash, text, err := m.write(ctx, claimText{Key: c.Key, Holder: c.Holder, Seconds: seconds, Beat: beat, Reserve: reserve})
	return claimRequest{Claim: c, update: refUpdate{ref: claimRef(c.Key), value: hash, lease: true, old: old}, text: text}, err
}

// forShared is the advice for a server that refuses claims.
const forShared = "reconcilers need to write below refs/reconcile/"

// pushClaims pushes claims, records those that this process holds now, and returns the others. If the answer was
// lost, unknown is the cause and all are returned: the caller checks.
func (m *Remote) pushClaims(ctx context.Context, wants []claimRequest) (failed []claimRequest, unknown, err error) {
	if len(wants) == 0 {
		return nil, nil, nil
	}
	updates := make([]refUpdate, len(wants))
	for i, w := range wants {
		updates[i] = w.update
	}
	answers, err := m.send(ctx, updates, false)
	if errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrDenied) {
		return wants, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range wants {
		switch a := answers[w.update.ref]; {
		case a.done:
			m.held[w.update.ref] = w.update.value
			m.seen[w.update.ref] = sighting{hash: w.update.value, since: m.now(), text: w.text}
		case a.refused:
			w.answer = a
			failed = append(failed, w)
		default:
			err = a.err(m.String(), forShared)
		}
	}
	return failed, nil, err
}

// Renew renews held claims on the remote, which Take obtained, until their new Expires, and returns the keys of lost
// ones. lost are the keys that other processes hold by now: the caller must end their effects and not record them as
// done. After an error the claims last until they expire.
func (m *Remote) Renew(ctx context.Context, claims []Claim) (lost []string, err error) {
	var wants []claimRequest
	for _, c := range claims {
		m.mu.Lock()
		old, reserve := m.held[claimRef(c.Key)], m.reserveOf(claimRef(c.Key))
		m.mu.Unlock()
		if old == "" {
			lost = append(lost, c.Key)
			continue
		}
		w, err := m.newClaimRequest(ctx, c, old, reserve)
		if err != nil {
			return lost, err
		}
		wants = append(wants, w)
	}
	failed, _, err := m.pushClaims(ctx, wants)
	if err != nil || len(failed) == 0 {
		return lost, err
	}
	if _, err := m.Fetch(ctx); err != nil {
		return lost, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range failed {
		ref := w.update.ref
		switch m.seen[ref].hash {
		case w.update.value:
			m.held[ref] = w.update.value
		case w.update.old: // the push did not arrive: the claim lasts, not renewed
			err = errors.Join(err, fmt.Errorf("%s: renew %s: %w: %s", m, w.Key, ErrUnwritable, w.answer.why))
		default:
			delete(m.held, ref)
			lost = append(lost, w.Key)
		}
	}
	return lost, err
}

// Drop releases claims. Keys that are not held, or that another process holds by now, are not an error.
func (m *Remote) Drop(ctx context.Context, keys []string) error {
	var updates []refUpdate
	m.mu.Lock()
	for _, key := range keys {
		if held := m.held[claimRef(key)]; held != "" {
			updates = append(updates, refUpdate{ref: claimRef(key), lease: true, old: held})
		}
	}
	m.mu.Unlock()
	if len(updates) == 0 {
		return nil
	}
	answers, err := m.send(ctx, updates, false)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range updates {
		if a := answers[u.ref]; !a.done && !a.refused {
			err = errors.Join(err, a.err(fmt.Sprintf("%s: drop %s", m, u.ref), forShared))
			continue
		}
		delete(m.held, u.ref)
		if m.seen[u.ref].hash == u.old {
			delete(m.seen, u.ref)
		}
	}
	return err
}

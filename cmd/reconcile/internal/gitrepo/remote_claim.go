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

// Claim says who performs an effect. It stands on the remote as refs/reconcile/claims/<key>.
type Claim struct {
	Key    string // of the effect; "" when the claim on the remote cannot be read
	Holder string // a name that no other process has; "" when the claim cannot be read
	// Expires is when the claim ends unless it is renewed. Clocks of machines differ, so what is on the remote is not a
	// time but a duration, and it counts from when this Remote first saw the claim as it is now: a wrong clock neither
	// steals nor waits for ever, and whoever comes anew waits once for the whole of it.
	Expires time.Time
}

// claimText is a claim as it is on the remote.
type claimText struct {
	Key     string `json:"key"`
	Holder  string `json:"holder"`
	Seconds int    `json:"seconds"`
	Beat    int    `json:"beat"` // differs with each renewal
}

// Bounds, in seconds, on how long a claim of others is respected without a sign of life; and how long one that says nothing
// legible is.
const (
	shortestClaim   = 1
	longestClaim    = 24 * 60 * 60
	unreadableClaim = 10 * time.Minute
)

// claimRef is the reference of a key: legible, and never the same for two keys, also where letter case is lost.
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

// claimOf is the claim on a reference, as last seen; the zero value if there is none. m.mu is held.
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

// Sighting says since when a claim or a ticket of another process has been as it is. No two of them, and no two renewals of
// one, have the same hash.
type Sighting struct {
	Ref   string // on the remote
	Hash  string
	Since time.Time // by this process's clock
}

// Sightings are those of the last Fetch, by reference, so that the next process on this tree need not watch a claim or a
// ticket for the whole of its time again. See Recall.
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

// Recall takes over what a process before this one saw. It is to be called before the first Fetch, with times that cannot
// be too early: who takes a claim over must have waited for it.
func (m *Remote) Recall(before []Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = map[string]Sighting{}
	for _, s := range before {
		m.before[s.Ref] = s
	}
}

// write makes a blob of a claim or ticket, and returns its hash. No two are the same.
func (m *Remote) write(ctx context.Context, text any) (string, []byte, error) {
	data, err := json.Marshal(text)
	if err != nil {
		return "", nil, err
	}
	out, err := m.git.run(ctx, call{stdin: data}, "hash-object", "-w", "-t", "blob", "--stdin")
	return strings.TrimSpace(string(out)), data, err
}

// wanted is a claim on its way to the remote.
type wanted struct {
	Claim
	update refUpdate
	text   []byte
	answer refAnswer // why it was refused
}

// Take claims keys for their holders until they expire, all in one push. Those that are somebody else's, and have not
// expired, come back with the claim that stands. A claim that the same holder has already is renewed. After an error
// nothing may be performed; what was claimed nevertheless expires. Fetch should have been called before.
func (m *Remote) Take(ctx context.Context, claims []Claim) (refused map[string]Claim, err error) {
	refused = map[string]Claim{}
	var wants []wanted
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
		w, err := m.want(ctx, c, old)
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
		failed, unknown, err := m.put(ctx, wants)
		if err != nil || len(failed) == 0 {
			return refused, err
		}
		if _, err := m.Fetch(ctx); err != nil { // who was it?
			return refused, err
		}
		if wants = m.judge(failed, refused); len(wants) > 0 && unknown != nil {
			return refused, unknown
		}
		if len(wants) > 0 && try == refusals {
			return refused, wants[0].answer.err(m.String(), forShared)
		}
	}
	return refused, nil
}

// judge finds out why claims were not taken: those that others have go to refused. What is left was not written although
// nobody changed the reference.
func (m *Remote) judge(failed []wanted, refused map[string]Claim) (left []wanted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range failed {
		switch there := m.seen[w.update.ref].hash; {
		case there == w.update.value: // the answer got lost, the claim did not
			m.held[w.update.ref] = there
		case there == w.update.old && (w.answer.unclear || !w.answer.refused):
			left = append(left, w)
		case there == "": // somebody was first, and is done already
			refused[w.Key] = Claim{Key: w.Key, Expires: m.now()}
		default:
			refused[w.Key] = m.claimOf(w.update.ref)
		}
	}
	return left
}

// want prepares a claim that replaces old.
func (m *Remote) want(ctx context.Context, c Claim, old string) (wanted, error) {
	m.mu.Lock()
	m.beat++
	beat := m.beat
	m.mu.Unlock()
	seconds := int((c.Expires.Sub(m.now()) + time.Second - 1) / time.Second)
	hash, text, err := m.write(ctx, claimText{Key: c.Key, Holder: c.Holder, Seconds: seconds, Beat: beat})
	return wanted{Claim: c, update: refUpdate{ref: claimRef(c.Key), value: hash, lease: true, old: old}, text: text}, err
}

// forShared is what to do about a server that takes no claims.
const forShared = "reconcilers need to write below refs/reconcile/"

// put pushes claims, takes note of those that are ours now, and returns the others. Where the answer got lost, unknown says
// why, and all are others: the caller looks.
func (m *Remote) put(ctx context.Context, wants []wanted) (failed []wanted, unknown, err error) {
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

// Renew makes claims that Take got last until their new Expires. lost are the keys that somebody else has by now: their
// effects must end, and what they did must not be recorded as done. After an error the claims stand until they expire.
func (m *Remote) Renew(ctx context.Context, claims []Claim) (lost []string, err error) {
	var wants []wanted
	for _, c := range claims {
		m.mu.Lock()
		old := m.held[claimRef(c.Key)]
		m.mu.Unlock()
		if old == "" {
			lost = append(lost, c.Key)
			continue
		}
		w, err := m.want(ctx, c, old)
		if err != nil {
			return lost, err
		}
		wants = append(wants, w)
	}
	failed, _, err := m.put(ctx, wants)
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
		case w.update.old: // the push never got there: the claim stands, not renewed
			err = errors.Join(err, fmt.Errorf("%s: renew %s: %w: %s", m, w.Key, ErrUnwritable, w.answer.why))
		default:
			delete(m.held, ref)
			lost = append(lost, w.Key)
		}
	}
	return lost, err
}

// Drop gives claims up. Keys that are not held, or that somebody else has by now, are no error.
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

package gitrepo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
)

// Reservation is a claim that also reserves a part of something that all reconcilers share.
type Reservation struct {
	Claim
	Text json.RawMessage // describes the part, for the others; below 2 KB
	Seen int             // Tip.Reserves of the Tip that it was decided with
}

// reservesRef changes with every reservation. Since a reservation is pushed together with a compare-and-swap of it, no one
// reserves without having seen all earlier reservations.
const (
	reserveRefs = sharedRefs + "reserves/"
	reservesRef = reserveRefs + "last"
)

// Reserve is Take for reservations, which are pushed all or none. again are the keys that were not claimed; the caller
// decides them again, since other reconcilers have reserved meanwhile.
func (m *Remote) Reserve(ctx context.Context, all []Reservation) (refused map[string]Claim, again []string, err error) {
	for try := 0; ; try++ {
		var wants []claimRequest
		refused = map[string]Claim{}
		if wants, again, err = m.reservable(ctx, all, refused); err != nil || len(wants) == 0 {
			return refused, again, err
		}
		answer, err := m.pushReserves(ctx, wants)
		if err != nil || answer == nil {
			return refused, again, err
		}
		if _, err := m.Fetch(ctx); err != nil {
			return refused, again, err
		}
		if m.reserved(wants) {
			return refused, again, nil
		}
		if try == refusals {
			return refused, again, answer.err(m.String(), forShared)
		}
		if err := m.afterRefusal(ctx, try); err != nil {
			return refused, again, err
		}
	}
}

// reservable are the claims to push: those that no one else holds, and that were decided with the present reservations.
func (m *Remote) reservable(ctx context.Context, all []Reservation, refused map[string]Claim) (wants []claimRequest, again []string, err error) {
	for _, r := range all {
		ref := claimRef(r.Key)
		m.mu.Lock()
		now, old, seen := m.claimOf(ref), m.seen[ref].hash, m.reserves
		m.mu.Unlock()
		switch {
		case old != "" && now.Holder != r.Holder && m.now().Before(now.Expires):
			refused[r.Key] = now
		case seen != r.Seen:
			again = append(again, r.Key)
		default:
			w, err := m.newClaimRequest(ctx, r.Claim, old, r.Text)
			if err != nil {
				return nil, nil, err
			}
			wants = append(wants, w)
		}
	}
	return wants, again, nil
}

// pushReserves pushes claims with a new value of reservesRef. The answer is nil if that was done, else that of the first update
// that was not, or of a push whose answer was lost.
func (m *Remote) pushReserves(ctx context.Context, wants []claimRequest) (*refAnswer, error) {
	last, text, err := m.write(ctx, map[string]string{"id": rand.Text()})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	mark := claimRequest{update: refUpdate{ref: reservesRef, value: last, lease: true, old: m.seen[reservesRef].hash, atomic: true}, text: text}
	m.mu.Unlock()
	wants = append(wants[:len(wants):len(wants)], mark)
	updates := make([]refUpdate, len(wants))
	for i, w := range wants {
		updates[i] = w.update
	}
	answers, err := m.send(ctx, updates, false)
	if errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrDenied) {
		return &refAnswer{failed: true, why: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if a := answers[u.ref]; !a.done {
			return &a, nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range wants {
		m.seen[w.update.ref] = sighting{hash: w.update.value, since: m.now(), text: w.text}
		if w.update.ref != reservesRef {
			m.held[w.update.ref] = w.update.value
		}
	}
	return nil, nil
}

// reserved reports whether claims are on the remote, after all.
func (m *Remote) reserved(wants []claimRequest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range wants {
		if m.seen[w.update.ref].hash != w.update.value {
			return false
		}
	}
	for _, w := range wants {
		m.held[w.update.ref] = w.update.value
	}
	return true
}

// reserveOf is what the claim on a reference reserves; nil for nothing. m.mu is held.
func (m *Remote) reserveOf(ref string) json.RawMessage {
	var text claimText
	if json.Unmarshal(m.seen[ref].text, &text) != nil {
		return nil
	}
	return text.Reserve
}

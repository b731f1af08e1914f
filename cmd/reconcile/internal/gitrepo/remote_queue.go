package gitrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Ticket is the place in the queue for the branch of a process that lost the race to it, or found others waiting.
// It is stored on the remote as refs/reconcile/waiting/<id>. The push of the branch renews it, and names the
// commit: once that commit is on the branch, the ticket is void, without another push.
type Ticket struct {
	ID     string
	Number int // lower is earlier; of equals, the lower ID goes first
}

// ticketText is a ticket as stored on the remote.
type ticketText struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
	Tried  string `json:"tried"` // the commit that its holder last tried to push
}

// waiting is the state of the competition for the branch.
type waiting struct {
	id        string
	hash      string // of our ticket on the remote, also if void, or ""
	live      bool   // not void
	noTickets bool   // the server refuses tickets
	number    int    // our place; 0 while we have none
	lost      int    // refusals in a row
	won       time.Time
	rivals    time.Time // when another process last competed
	began     time.Time // when the fetch that precedes the next push began
	pace      time.Duration
	first     string // the ticket that is the first, as reference and hash
	since     time.Time
}

// Times of the competition.
const (
	// restTime is how long a winner pauses before its next turn.
	restTime = 500 * time.Millisecond
	// peaceTime is how long no other process must compete before a winner stops pausing.
	peaceTime = 10 * time.Second
	// firstPace is the assumed duration of fetching, deciding and pushing before it is measured.
	firstPace = 200 * time.Millisecond
	// staleTicket is the age at which any process may remove a ticket.
	staleTicket = 2 * time.Minute
)

// limits returns how long the first ticket may stay first without a push of its holder, which is then considered
// dead, and how long Turn waits for others at most.
func (w *waiting) limits() (first, turn time.Duration) {
	return max(2*time.Second, 10*w.pace), max(5*time.Second, 30*w.pace)
}

// Turn waits for the caller's turn to decide and push, behind the waiting tickets of others, and fetches the Tip.
// Without competitors it does not wait. Otherwise a winner pauses for a moment, and a caller that lost, or finds others
// waiting, takes a ticket and lets those before it go first. The wait is bounded: it prevents starvation, but is not a
// lock.
func (m *Remote) Turn(ctx context.Context) (Tip, error) {
	m.mu.Lock()
	rest, enqueue := m.pauseBefore(m.now())
	_, longest := m.waiting.limits()
	m.mu.Unlock()
	for deadline := m.now().Add(rest + longest); ; {
		if enqueue {
			m.enqueue(ctx)
		}
		if err := pauseTurn(ctx, rest); err != nil {
			return Tip{}, err
		}
		began := m.now()
		tip, err := m.Fetch(ctx)
		if err != nil {
			return tip, err
		}
		m.mu.Lock()
		ahead := m.ticketsAhead(tip.Tickets)
		m.waiting.began = began
		rest = time.Duration((float64(ahead-1) + 0.25*m.jitter()) * float64(m.waiting.pace)) // the next in line polls often
		enqueue = !m.waiting.live && !m.waiting.noTickets
		m.mu.Unlock()
		if ahead == 0 || m.now().After(deadline) {
			return tip, nil
		}
	}
}

// pauseTurn waits.
func pauseTurn(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// pauseBefore returns how long to wait before the first fetch, and whether a ticket is needed before it. m.mu is
// held.
func (m *Remote) pauseBefore(now time.Time) (d time.Duration, enqueue bool) {
	w := &m.waiting
	switch {
	case w.lost > 0 && w.noTickets:
		return time.Duration(m.jitter() * float64(w.pace) * float64(int(1)<<min(w.lost, 4))), false
	case w.lost > 0 && !w.live:
		return time.Duration(m.jitter() * float64(w.pace)), true
	case w.lost == 0 && !w.won.IsZero() && now.Sub(w.rivals) < peaceTime:
		return max(0, restTime-now.Sub(w.won)), false
	}
	return 0, false
}

// enqueue pushes our ticket to the remote. A server that refuses tickets is not asked again; other failures are
// retried with the next fetch.
func (m *Remote) enqueue(ctx context.Context) {
	ticket, err := m.ticketFor(ctx, "")
	if err != nil {
		return
	}
	answers, err := m.send(ctx, []refUpdate{ticket}, false)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch a := answers[ticket.ref]; {
	case a.done:
		m.waiting.hash, m.waiting.live = ticket.value, true
	case a.refused && !a.unclear: // not as expected: another process removed it, or an answer was lost
		m.waiting.hash = m.seen[ticket.ref].hash
	default:
		m.waiting.noTickets = true
	}
}

// ticketsAhead counts the tickets before ours. A new process is assigned a number, which the others do not know
// yet. m.mu is held.
func (m *Remote) ticketsAhead(tickets []Ticket) int {
	w := &m.waiting
	n, last := 0, 0
	for _, t := range tickets {
		if t.ID == w.id {
			continue
		}
		w.rivals = m.now()
		last = max(last, t.Number)
		if w.number == 0 || t.Number < w.number || t.Number == w.number && t.ID < w.id {
			n++
		}
	}
	if w.number == 0 {
		w.number = last + 1
	}
	return n
}

// tickets lists the valid ones, in order. m.mu is held; head is the branch.
func (m *Remote) tickets(head string) []Ticket {
	texts := map[string]ticketText{} // by reference
	tried := map[string]bool{}
	for ref, s := range m.seen {
		var text ticketText
		if strings.HasPrefix(ref, waitingRefs) && json.Unmarshal(s.text, &text) == nil && waitingRefs+text.ID == ref && text.Number > 0 {
			texts[ref] = text
			tried[text.Tried] = true
		}
	}
	if len(texts) == 0 {
		return nil
	}
	m.onBranch(head, tried)
	var out []Ticket
	for _, text := range texts {
		if tried[text.Tried] {
			out = append(out, Ticket{text.ID, text.Number})
		}
	}
	slices.SortFunc(out, func(a, b Ticket) int { return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.ID, b.ID)) })
	return m.withoutDead(out)
}

// onBranch unmarks the commits that are on the branch, back to the oldest that a ticket can name.
func (m *Remote) onBranch(head string, tried map[string]bool) {
	const far = 200
	store := newObjectStore(m.repo.layout)
	defer store.close()
	for range far {
		if head == "" {
			return
		}
		if tried[head] {
			tried[head] = false
		}
		c, err := store.commit(head)
		if err != nil || len(c.Parents) == 0 {
			return
		}
		head = c.Parents[0]
	}
}

// withoutDead drops the first ticket if its holder missed its turn.
func (m *Remote) withoutDead(tickets []Ticket) []Ticket {
	w := &m.waiting
	first, _ := w.limits()
	for len(tickets) > 0 {
		ref := waitingRefs + tickets[0].ID
		if at := ref + " " + m.seen[ref].hash; at != w.first {
			w.first, w.since = at, m.now()
		}
		if tickets[0].ID == w.id || m.now().Sub(w.since) < first {
			break
		}
		m.seen[ref] = sighting{hash: m.seen[ref].hash, since: m.seen[ref].since} // without a text it is not a ticket
		tickets = tickets[1:]
	}
	return tickets
}

// ticketFor returns the update that pushes our ticket, to become void with the commit.
func (m *Remote) ticketFor(ctx context.Context, commit string) (refUpdate, error) {
	m.mu.Lock()
	m.waiting.number = max(m.waiting.number, 1)
	w := m.waiting
	m.mu.Unlock()
	hash, _, err := m.write(ctx, ticketText{ID: w.id, Number: w.number, Tried: commit})
	return refUpdate{ref: waitingRefs + w.id, value: hash, lease: true, old: w.hash}, err
}

// staleTickets returns the tickets that are no longer in use: those that are old, and those whose holders missed their turn
// here. A holder that was only slow pushes its ticket again, with the same number. m.mu is held.
func (m *Remote) staleTickets() []refUpdate {
	var out []refUpdate
	for ref, s := range m.seen {
		missed := len(s.text) == 0
		if strings.HasPrefix(ref, waitingRefs) && ref != waitingRefs+m.waiting.id && (missed || m.now().Sub(s.since) > staleTicket) {
			out = append(out, refUpdate{ref: ref, lease: true, old: s.hash})
		}
	}
	return out
}

// SweepTickets sweeps stale tickets from the remote: those of dead processes, as of the last Fetch. Failures are left
// for the next time.
func (m *Remote) SweepTickets(ctx context.Context) {
	m.mu.Lock()
	updates := m.staleTickets()
	m.mu.Unlock()
	if len(updates) > 0 {
		_, _ = m.send(ctx, updates, false)
	}
}

// has reports whether commit is head, or an ancestor of it.
func (m *Remote) has(ctx context.Context, head, commit string) (bool, error) {
	if head == "" || head == commit {
		return head == commit, nil
	}
	_, err := m.git.run(ctx, call{}, "merge-base", "--is-ancestor", commit, head)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// afterRefusal waits before the next try, longer after each.
func (m *Remote) afterRefusal(ctx context.Context, try int) error {
	return pauseTurn(ctx, time.Duration((1+m.jitter())*float64(firstPause))<<(2*try))
}

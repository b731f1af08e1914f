package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// health is whether the remote can be reached. Its methods may be called from any goroutine.
type health struct {
	name     string
	watching bool
	warn     func(string)

	mu       sync.Mutex
	away     [2]time.Time // by way: since when it cannot be reached so; zero: it can
	reported bool         // and that was reported
}

// way is how a remote is used. One that can be read may still take nothing: its disk is full, a proxy lets no push through.
type way int

const (
	reading way = iota
	writing     // which reads, too
)

// awayFor is how long a one-shot run goes on trying to claim what it is to start.
const awayFor = time.Minute

// refusedFor is the same where the remote answers, but does not write the claim.
const refusedFor = 5 * time.Second

// Transient reports whether an error of a remote may be gone at the next try.
func Transient(err error) bool {
	return errors.Is(err, gitrepo.ErrUnreachable) && !errors.Is(err, gitrepo.ErrDenied) ||
		errors.Is(err, gitrepo.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// observe notes how a call of the remote ended.
func (h *health) observe(how way, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		clear(h.away[:how+1])
	case Transient(err) && h.away[how].IsZero():
		h.away[how] = time.Now()
	}
	if h.reported && h.away == [2]time.Time{} {
		h.reported = false
		h.warn(h.name + " can be reached again")
	}
}

// outage reports, once, that the run goes on although the remote cannot be reached.
func (h *health) outage(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reported || h.away == [2]time.Time{} {
		return
	}
	h.reported = true
	h.warn(fmt.Sprintf("%v; what runs goes on, what is recorded is kept here, and nothing is started before %s can be "+
		"reached again", err, h.name))
}

// retry notes how a claim ended, and reports whether it is to be tried again.
func (h *health) retry(err error) bool {
	h.observe(writing, err)
	if err == nil {
		return true
	}
	h.mu.Lock()
	patience := awayFor
	if errors.Is(err, gitrepo.ErrUnwritable) {
		patience = refusedFor
	}
	again := Transient(err) && (h.watching || time.Since(h.away[writing]) < patience)
	h.mu.Unlock()
	if again {
		h.outage(err)
	}
	return again
}

// Outage reports, once, that the run goes on although the remote cannot be reached, where err says so.
func (s *Share) Outage(err error) {
	if Transient(err) {
		s.health.outage(err)
	}
}

package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// health tracks whether the remote is reachable. Its methods may be called from any goroutine.
type health struct {
	name     string
	watching bool
	warn     func(string)

	mu           sync.Mutex
	failingSince [2]time.Time // by access: since when it fails; zero: it works
	reported     bool         // and the outage was reported
}

// access is a kind of use of a remote. A readable remote may still refuse writes: a full disk, or a proxy that blocks
// pushes.
type access int

const (
	reading access = iota
	writing        // includes reading
)

// claimTimeout is how long a one-shot run retries a claim.
const claimTimeout = time.Minute

// refusedTimeout is the same if the remote responds but refuses the claim.
const refusedTimeout = 5 * time.Second

// Transient reports whether an error of a remote is transient: unreachable, busy, or past its deadline, and not denied.
// It may disappear on retry.
func Transient(err error) bool {
	return errors.Is(err, gitrepo.ErrUnreachable) && !errors.Is(err, gitrepo.ErrDenied) ||
		errors.Is(err, gitrepo.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// observe records the result of a call of the remote.
func (h *health) observe(how access, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		clear(h.failingSince[:how+1])
	case Transient(err) && h.failingSince[how].IsZero():
		h.failingSince[how] = time.Now()
	}
	if h.reported && h.failingSince == [2]time.Time{} {
		h.reported = false
		h.warn(h.name + " can be reached again")
	}
}

// outage reports once that the run continues although the remote is unreachable.
func (h *health) outage(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reported || h.failingSince == [2]time.Time{} {
		return
	}
	h.reported = true
	h.warn(fmt.Sprintf("%v; what runs goes on, what is recorded is kept here, and nothing is started before %s can be "+
		"reached again", err, h.name))
}

// retry records the result of a claim, and reports whether to try again.
func (h *health) retry(err error) bool {
	h.observe(writing, err)
	if err == nil {
		return true
	}
	h.mu.Lock()
	patience := claimTimeout
	if errors.Is(err, gitrepo.ErrUnwritable) {
		patience = refusedTimeout
	}
	again := Transient(err) && (h.watching || time.Since(h.failingSince[writing]) < patience)
	h.mu.Unlock()
	if again {
		h.outage(err)
	}
	return again
}

// Outage reports an outage of the remote to the share's health, once, if the error is transient: the run continues.
func (s *Share) Outage(err error) {
	if Transient(err) {
		s.health.outage(err)
	}
}

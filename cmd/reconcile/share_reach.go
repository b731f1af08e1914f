package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// reach keeps track of whether the remote can be reached. Its methods may be called from any goroutine.
type reach struct {
	name     string
	watching bool
	warn     func(string)

	mu   sync.Mutex
	away [2]time.Time // by way: since when it cannot be reached so; zero: it can
	told bool         // and that was said
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

// passes reports whether an error of a remote may be gone at the next try.
func passes(err error) bool {
	return errors.Is(err, gitrepo.ErrUnreachable) && !errors.Is(err, gitrepo.ErrDenied) ||
		errors.Is(err, gitrepo.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// heard takes in how a call of the remote ended.
func (r *reach) heard(how way, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		clear(r.away[:how+1])
	case passes(err) && r.away[how].IsZero():
		r.away[how] = time.Now()
	}
	if r.told && r.away == [2]time.Time{} {
		r.told = false
		r.warn(r.name + " can be reached again")
	}
}

// endured says, once, that the run goes on although the remote cannot be reached.
func (r *reach) endured(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told || r.away == [2]time.Time{} {
		return
	}
	r.told = true
	r.warn(fmt.Sprintf("%v; what runs goes on, what is recorded is kept here, and nothing is started before %s can be "+
		"reached again", err, r.name))
}

// retry takes in how a claim ended, and reports whether it is to be tried again.
func (r *reach) retry(err error) bool {
	r.heard(writing, err)
	if err == nil {
		return true
	}
	r.mu.Lock()
	patience := awayFor
	if errors.Is(err, gitrepo.ErrUnwritable) {
		patience = refusedFor
	}
	again := passes(err) && (r.watching || time.Since(r.away[writing]) < patience)
	r.mu.Unlock()
	if again {
		r.endured(err)
	}
	return again
}

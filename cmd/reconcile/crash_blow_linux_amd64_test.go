package main

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/state/mutants"
)

// blow is a way in which file-changing calls are struck, each n-th of them, n being every.
type blow struct {
	name  string
	mode  crashtest.Mode
	errno syscall.Errno
	every int
	first int // the first call that is struck, from 1; 0: in the middle of the first n
}

// blows are the ways to strike a program: killed before a call, killed in the middle of a write, with a full disk, and with a
// broken one. Of each only every n-th call is struck, none if n is 0; with RECONCILE_SWEEP=all all are. They take long: a
// test that asks for them is skipped with -short, and runs beside others.
func blows(t *testing.T, kill, torn, full, broken int) []blow {
	if testing.Short() {
		t.Skip("runs the program once for many of its file-changing calls")
	}
	t.Parallel()
	var out []blow
	for _, b := range []blow{
		{"kill", crashtest.Kill, 0, kill, 0}, {"torn", crashtest.Torn, 0, torn, 0},
		{"full", crashtest.Fail, syscall.ENOSPC, full, 0}, {"broken", crashtest.Fail, syscall.EIO, broken, 0},
	} {
		if b.every > 0 && mutants.All() {
			b.every = 1
		}
		if b.every > 0 {
			out = append(out, b)
		}
	}
	return out
}

// inParts divides blows that strike all calls into four that do so beside each other.
func inParts(blows []blow) (out []blow) {
	for _, b := range blows {
		if b.every > 1 {
			out = append(out, b)
			continue
		}
		for first := 1; first <= 4; first++ {
			out = append(out, blow{fmt.Sprintf("%s from %d", b.name, first), b.mode, b.errno, 4, first})
		}
	}
	return out
}

// strike runs the commands of a fixture, each struck at one of the calls.
func (b blow) strike(ctx context.Context, fixture func() (crashtest.Spec, error), check func(crashtest.Spec, crashtest.Result) error) (int, error) {
	if b.first > 0 {
		return crashtest.From(ctx, b.first, b.every, fixture, check)
	}
	return crashtest.EveryNth(ctx, b.every, fixture, check)
}

// run strikes what has a name, beside others. strike returns how many calls were struck.
func (b blow) run(t *testing.T, name string, strike func(*testing.T) (int, error)) {
	t.Run(name+" "+b.name, func(t *testing.T) {
		t.Parallel()
		n, err := strike(t)
		if err != nil {
			t.Error(err)
		}
		t.Logf("struck at %d calls", n)
	})
}

// advised checks that a program that failed for want of room said what to do.
func (b blow) advised(r crashtest.Result) error {
	if b.errno == syscall.ENOSPC && r.Exit == exitFailure && !bytes.Contains(r.Stderr, []byte("free some space")) {
		return fmt.Errorf("the disk was full, and no next step is named:\n%s", r.Stderr)
	}
	return nil
}

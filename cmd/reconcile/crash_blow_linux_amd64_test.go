package main

import (
	"bytes"
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
		{"kill", crashtest.Kill, 0, kill}, {"torn", crashtest.Torn, 0, torn},
		{"full", crashtest.Fail, syscall.ENOSPC, full}, {"broken", crashtest.Fail, syscall.EIO, broken},
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

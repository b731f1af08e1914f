package main

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// TestReachOfARemoteThatTakesNothing reads in between what cannot be written: a run gives up all the same, and does not
// say that the remote is back before it is.
func TestReachOfARemoteThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		r := &reach{name: "origin/main", warn: func(text string) { said = append(said, text) }}
		full := fmt.Errorf("no space left: %w", gitrepo.ErrUnreachable)
		tries := 1
		for start := time.Now(); r.retry(full) && time.Since(start) < 2*awayFor; tries++ {
			r.heard(reading, nil)
			time.Sleep(10 * time.Second)
		}
		if tries != 7 || len(said) != 1 {
			t.Errorf("%d tries, said %q", tries, said)
		}
		r.heard(writing, nil)
		if len(said) != 2 || !slices.Contains(said, "origin/main can be reached again") || !r.retry(full) {
			t.Errorf("said %q", said)
		}
	})
}

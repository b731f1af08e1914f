package main

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func TestRan(t *testing.T) {
	start := schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))
	later := schemas.NewTime(start.Add(time.Minute))
	for _, c := range []struct {
		name string
		run  schemas.Run
		want time.Duration
	}{
		{"some time", schemas.Run{StartedAt: start, FinishedAt: later}, time.Minute},
		{"no time", schemas.Run{StartedAt: start, FinishedAt: start}, time.Millisecond},
		{"never started", schemas.Run{FinishedAt: start}, 0},
	} {
		if got := ran(&c.run); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// What an index lacks is tried again after a while, each time after twice as long, up to a bound.
func TestLackingIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lacking
		if l.tried(false); l.again != nil {
			t.Error("what is whole is tried again")
		}
		want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute,
			time.Hour, time.Hour}
		for _, wait := range want {
			start := time.Now()
			l.tried(true)
			<-l.again
			if waited := time.Since(start); waited != wait {
				t.Errorf("tried again after %v, want %v", waited, wait)
			}
		}
		l.tried(false)
		l.tried(true)
		if l.wait != time.Minute {
			t.Errorf("after it was whole, tried again after %v", l.wait)
		}
	})
}

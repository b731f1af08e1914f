package indexing

import (
	"testing"
	"testing/synctest"
	"time"
)

// What an index lacks is tried again after a while, each time after twice as long, up to a bound.
func TestVectorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r retry
		if r.noteTry(false); r.again != nil {
			t.Error("what is whole is tried again")
		}
		want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute,
			time.Hour, time.Hour}
		for _, wait := range want {
			start := time.Now()
			r.noteTry(true)
			<-r.again
			if waited := time.Since(start); waited != wait {
				t.Errorf("tried again after %v, want %v", waited, wait)
			}
		}
		r.noteTry(false)
		r.noteTry(true)
		if r.wait != time.Minute {
			t.Errorf("after it was whole, tried again after %v", r.wait)
		}
	})
}

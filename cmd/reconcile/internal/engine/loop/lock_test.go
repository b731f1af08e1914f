package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// A run waits for the lock of the tree as long as another process that holds it goes on.
func TestAcquireWaitsForOneThatGoesOn(t *testing.T) {
	goesOn := &lock.BusyError{PID: 7, Hung: true, Age: 4 * time.Second}
	hangs := &lock.BusyError{PID: 7, Hung: true, Age: 20 * time.Second}
	foreign := &lock.BusyError{PID: 1, Age: time.Second} // it has no guard, and need not renew its lock
	told := errors.New("told to stop")
	for name, row := range map[string]struct {
		tries  []error // of each try to take it
		waits  error
		want   error
		waited int
	}{
		"free":                   {[]error{nil}, nil, nil, 0},
		"goes on for long":       {[]error{goesOn, fmt.Errorf("lock the tree: %w", goesOn), goesOn, nil}, nil, nil, 3},
		"goes on, then hangs":    {[]error{goesOn, hangs}, nil, hangs, 1},
		"another program has it": {[]error{foreign}, nil, foreign, 0},
		"told to stop":           {[]error{goesOn, nil}, told, told, 1},
		"something else":         {[]error{context.Canceled}, nil, context.Canceled, 0},
	} {
		waited, left := 0, slices.Clone(row.tries)
		taken, err := acquire(func() (*state.Lock, error) {
			err := left[0]
			left = left[1:]
			if err != nil {
				return nil, err
			}
			return new(state.Lock), nil
		}, func(busy *lock.BusyError) error {
			if waited++; busy.PID != 7 {
				t.Errorf("%s: waits for %v", name, busy)
			}
			return row.waits
		})
		if !errors.Is(err, row.want) || (taken != nil) != (err == nil) || waited != row.waited {
			t.Errorf("%s: %v, %v after %d waits", name, taken, err, waited)
		}
	}
}

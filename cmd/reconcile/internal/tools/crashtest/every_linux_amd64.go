package crashtest

import (
	"context"
	"fmt"
	"math"
)

// Every runs the commands that fixture makes, each in a fresh folder, once for each call that counts for the mode, and
// calls check on the result: the K-th run is struck at the K-th call. It ends after the first run that was not struck,
// which completed, and returns how many were. An error names K and the call.
func Every(ctx context.Context, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	return EveryNth(ctx, 1, fixture, check)
}

// EveryNth is [Every] for fewer calls: each n-th, beginning in the middle of the first n. For n > 1 a run that is not struck, and not
// checked, tells how many calls there are, unless the spec knows; at least one is struck, if there is any.
func EveryNth(ctx context.Context, n int, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	if n == 1 {
		return From(ctx, 1, 1, fixture, check)
	}
	most, err := points(ctx, fixture)
	if err != nil || most == 0 {
		return 0, err
	}
	return between(ctx, min((n+1)/2, most), most, n, fixture, check)
}

// From is [Every] for each n-th call from the first one on, counted from 1. Calls of several of them, from 1 to n, are all that [Every] strikes.
func From(ctx context.Context, first, n int, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	return between(ctx, first, math.MaxInt, n, fixture, check)
}

func between(ctx context.Context, first, most, n int, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	for done := 0; ; done++ {
		k := first + done*n
		if k > most {
			return done, nil
		}
		s, err := fixture()
		s.K = k
		if err != nil {
			return done, fmt.Errorf("crashtest: fixture %d: %w", s.K, err)
		}
		r, err := Run(ctx, s)
		if err != nil {
			return done, fmt.Errorf("%s at %d: %w", s.Mode, s.K, err)
		}
		if err := check(s, r); err != nil {
			return done, fmt.Errorf("%s at %d%s: %w", s.Mode, s.K, struck(s, r), err)
		}
		if !r.Struck {
			return done, nil
		}
	}
}

// points returns how many calls of an undisturbed run count for the mode of a spec.
func points(ctx context.Context, fixture func() (Spec, error)) (int, error) {
	s, err := fixture()
	if err != nil {
		return 0, fmt.Errorf("crashtest: fixture: %w", err)
	}
	if s.Seen == nil {
		undisturbed := s
		undisturbed.Mode = None
		r, err := Run(ctx, undisturbed)
		if err != nil {
			return 0, fmt.Errorf("undisturbed: %w", err)
		}
		s.Seen = r.Calls
	}
	n := 0
	for _, c := range s.Seen {
		if s.counts(c) {
			n++
		}
	}
	return n, nil
}

// counts reports whether a call counts for the mode.
func (s Spec) counts(c Call) bool {
	return counts(c, s.Mode, s.Errno) && (s.Skip == nil || !s.Skip(c))
}

// struck describes the call that was struck.
func struck(s Spec, r Result) string {
	n := 0
	for _, c := range r.Calls {
		if s.counts(c) {
			if n++; n == s.K {
				return fmt.Sprintf(" (%s %s %s)", c.Name, c.Path, c.To)
			}
		}
	}
	return ""
}

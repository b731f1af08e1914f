package crashtest

import (
	"context"
	"fmt"
)

// Every runs the commands that fixture makes, each in a fresh folder, once for each call that counts for the mode, and
// calls check on the result: the K-th run is struck at the K-th call. It ends after the first run that was not struck,
// which completed, and returns how many were. An error names K and the call.
func Every(ctx context.Context, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	return EveryNth(ctx, 1, fixture, check)
}

// EveryNth runs the spec of a fixture with a crash at each n-th call, beginning with the first, and checks the result.
// It is [Every] for fewer calls.
func EveryNth(ctx context.Context, n int, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	for done := 0; ; done++ {
		s, err := fixture()
		s.K = 1 + done*n
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

// struck describes the call that was struck.
func struck(s Spec, r Result) string {
	n := 0
	for _, c := range r.Calls {
		if counts(c.Op, s.Mode, s.Errno) && (s.Skip == nil || !s.Skip(c)) {
			if n++; n == s.K {
				return fmt.Sprintf(" (%s %s %s)", c.Name, c.Path, c.To)
			}
		}
	}
	return ""
}

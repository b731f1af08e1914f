package crashtest

import (
	"context"
	"fmt"
)

// Every runs what fixture makes, a fresh folder each time, once for each call that counts for the mode, and has check look
// at what is left: the K-th run was struck at the K-th call. It ends after the first run that was not struck, which did all
// its work, and returns how many were. An error names K and the call.
func Every(ctx context.Context, fixture func() (Spec, error), check func(Spec, Result) error) (int, error) {
	for k := 1; ; k++ {
		s, err := fixture()
		if err != nil {
			return k - 1, fmt.Errorf("crashtest: fixture %d: %w", k, err)
		}
		s.K = k
		r, err := Run(ctx, s)
		if err != nil {
			return k - 1, fmt.Errorf("%s at %d: %w", s.Mode, k, err)
		}
		if err := check(s, r); err != nil {
			return k - 1, fmt.Errorf("%s at %d%s: %w", s.Mode, k, struck(s, r), err)
		}
		if !r.Struck {
			return k - 1, nil
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

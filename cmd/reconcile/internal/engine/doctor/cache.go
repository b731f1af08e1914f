package doctor

import (
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// checkCache compares the cache with the files.
func checkCache(ctx context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	const again = 2 // a live run may write the cache again meanwhile
	differ, err := e.store.CompareCache(ctx)
	for range again {
		if err == nil && len(differ) > 0 {
			differ, err = e.compareCache(ctx)
		}
	}
	switch {
	case err != nil:
		return []Finding{bad(fmt.Sprintf("the cache cannot be compared with the files: %v", err), "").by(e.dropCache)}
	case len(differ) > 0:
		return []Finding{bad("the cache says something else than the files about "+some(differ),
			"doctor --fix removes it; the next run makes a new one").by(e.dropCache)}
	}
	return ok("says of " + schemas.Count(e.tree.Len(), "object") + " what their files say")
}

// compareCache reads the tree with its cache, and compares the files.
func (e *Patient) compareCache(ctx context.Context) (differ []string, err error) {
	s, err := e.Open(false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Load(ctx); err != nil {
		return nil, err
	}
	return s.CompareCache(ctx)
}

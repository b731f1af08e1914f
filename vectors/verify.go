package vectors

import (
	"bytes"
	"errors"

	"reconcile.dev/reconcile/vectors/knn"
)

// errOther ends a comparison.
var errOther = errors.New("other bytes")

// Same reports whether the snapshot is that one. The error is that of what was built, when it cannot be read any more.
func (x *Index) Same(as *Snapshot) (bool, error) {
	rest := x.data
	err := as.Write(func(b []byte) error {
		if len(rest) < len(b) || !bytes.Equal(rest[:len(b)], b) {
			return errOther
		}
		rest = rest[len(b):]
		return nil
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	return err == nil && len(rest) == 0, err
}

// Recall asks for the 10 nearest of some vectors of the snapshot, as a search does and by looking at every vector, and
// returns how many of these the search finds: 1 for all. asked is how many vectors were asked for, at most n.
func (x *Index) Recall(n int) (recall float64, asked int, err error) {
	if x.near == nil || x.near.Slots() == 0 {
		return 1, 0, nil
	}
	const k = 10
	var sample [][]float32
	step := max(1, x.near.Slots()/max(1, n))
	for slot := 0; slot < x.near.Slots() && len(sample) < n; slot += step {
		if id, ok := x.near.ID(uint32(slot)); ok {
			v, _ := x.near.Vector(nil, id)
			sample = append(sample, v)
		}
	}
	exact, err := x.near.SearchMany(sample, knn.SearchOptions{K: k, Exact: true})
	if err != nil {
		return 0, len(sample), err
	}
	hits, err := x.near.SearchMany(sample, knn.SearchOptions{K: k, Ef: x.ef(false)})
	if err != nil {
		return 0, len(sample), err
	}
	found, all := 0, 0
	for i, exact := range exact {
		all += len(exact)
		// Of equals either may be found: what counts is how near it is.
		for _, h := range hits[i] {
			if h.Similarity >= exact[len(exact)-1].Similarity {
				found++
			}
		}
	}
	return float64(min(found, all)) / float64(max(all, 1)), len(sample), nil
}

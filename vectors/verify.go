package vectors

import (
	"bytes"
	"errors"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
)

// errOther ends a comparison.
var errOther = errors.New("other bytes")

// Same reports whether the data of the index are, byte for byte, those that a built snapshot writes. The error is that
// of reading the built snapshot.
func (x *Index) Same(as *Snapshot) (bool, error) {
	rest := x.Stored.base.Bytes()
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

// Recall is the share of the nearest vectors that searches find.
type Recall struct {
	Asked             int     // how many vectors were asked for
	Default, Thorough float64 // shares of the 10 nearest, 1 for all
}

// Recall measures the recall of the vector search, default and thorough, by the share of the 10 nearest vectors that it
// finds of those that an exact search finds, for a sample of at most n vectors of the snapshot.
func (x *Index) Recall(n int) (Recall, error) {
	r := Recall{Default: 1, Thorough: 1}
	if x.Stored.near == nil || x.Stored.near.Slots() == 0 {
		return r, nil
	}
	var sample [][]float32
	step := max(1, x.Stored.near.Slots()/max(1, n))
	for slot := 0; slot < x.Stored.near.Slots() && len(sample) < n; slot += step {
		if id, ok := x.Stored.near.ID(uint32(slot)); ok {
			v, _ := x.Stored.near.Vector(nil, id)
			sample = append(sample, v)
		}
	}
	r.Asked = len(sample)
	const k = 10
	exact, err := x.Stored.near.SearchMany(sample, knn.SearchOptions{K: k, Exact: true})
	if err != nil {
		return r, err
	}
	for _, thorough := range []bool{false, true} {
		hits, err := x.Stored.near.SearchMany(sample, knn.SearchOptions{K: k, Ef: x.Stored.ef(x.Stored.near, thorough)})
		if err != nil {
			return r, err
		}
		if thorough {
			r.Thorough = shareFound(hits, exact)
		} else {
			r.Default = shareFound(hits, exact)
		}
	}
	return r, nil
}

// shareFound is what part of the exact hits was found. Of equals either may be: what counts is how near a hit is.
func shareFound(hits, exact [][]knn.Hit) float64 {
	found, all := 0, 0
	for i, exact := range exact {
		all += len(exact)
		near := 0
		for _, h := range hits[i] {
			if h.Similarity >= exact[len(exact)-1].Similarity {
				near++
			}
		}
		found += min(near, len(exact))
	}
	return float64(found) / float64(max(all, 1))
}

// idsExcept are the ids of an index but for those that stay.
func idsExcept(x *knn.Index, stays map[uint64]bool) []uint64 {
	var out []uint64
	for slot := range uint32(x.Slots()) {
		if id, ok := x.ID(slot); ok && !stays[id] {
			out = append(out, id)
		}
	}
	return out
}

// placesSound compares the places of all nodes of vectors with their ids.
func (x *Index) placesSound() bool {
	for slot := range uint32(x.Stored.near.Slots()) {
		if id, ok := x.Stored.near.ID(slot); !ok || graph.HashID(x.Stored.baseGraph.ID(x.place(slot))) != id {
			return false
		}
	}
	return true
}

// Verify checks the base snapshot, its graph, its word index and its vectors for damage, including sections that are
// otherwise checked on their first use.
func (x *Index) Verify() error {
	if err := errors.Join(x.Stored.base.Verify(), x.Stored.baseGraph.Verify(), x.Stored.baseWords.Verify()); err != nil {
		return damaged(err)
	}
	if x.Stored.near != nil {
		if err := x.Stored.near.Verify(); err != nil {
			return damaged(err)
		}
		if !x.placesSound() {
			return ErrDamaged
		}
	}
	return nil
}

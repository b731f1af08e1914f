package knn_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// assembled are the bytes that Assemble makes of vectors.
func assembled(t *testing.T, o knn.Options, items []knn.Item) []byte {
	t.Helper()
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b knn.Item) int { return int(min(a.ID, 1<<31)) - int(min(b.ID, 1<<31)) })
	var ids []uint64
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	a, err := knn.Assemble(context.Background(), o, ids, func(row int, into []float32) error {
		copy(into, items[row].Vector)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	content := a.Content()
	if err := content.Write(func(b []byte) error { out = append(out, b...); return nil }); err != nil {
		t.Fatal(err)
	}
	if uint64(len(out)) != content.Length {
		t.Errorf("%d bytes were written, and %d announced", len(out), content.Length)
	}
	return out
}

// Vectors that are elsewhere make the bytes of those that are in memory, scanned and with a graph.
func TestAssemble(t *testing.T) {
	t.Parallel()
	data := knntest.Spec{Shape: knntest.Clustered, N: 700, Dims: 64, Seed: 3}.Make()
	var items []knn.Item
	for i := range data.N {
		v := slices.Clone(data.Vector(i))
		for j := range v {
			v[j] *= float32(i%7 + 1) // lengths are kept, too
		}
		items = append(items, knn.Item{ID: uint64(i*7919%10007 + 1), Vector: v})
	}
	for _, o := range []knn.Options{{Dims: 64}, {Dims: 64, GraphFrom: 100}, {Dims: 64, GraphFrom: 100, Threads: 1}} {
		x, err := knn.Build(context.Background(), o, items, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(assembled(t, o, items), x.AppendTo(nil)) {
			t.Errorf("%+v: the bytes are not those of Build", o)
		}
	}
	if x, err := knn.Open(assembled(t, knn.Options{Dims: 64}, nil)); err != nil || x.Len() != 0 {
		t.Errorf("without vectors: %v", err)
	}
}

func TestAssembleRefuses(t *testing.T) {
	t.Parallel()
	gone := errors.New("it is gone")
	one := func(_ int, into []float32) error { into[0] = 1; return nil }
	for name, c := range map[string]struct {
		ids  []uint64
		from knn.Source
		want error
	}{
		"twice":      {[]uint64{1, 1}, one, knn.ErrTwice},
		"no order":   {[]uint64{2, 1}, one, nil},
		"zero":       {[]uint64{1}, func(int, []float32) error { return nil }, knn.ErrZero},
		"unreadable": {[]uint64{1}, func(int, []float32) error { return gone }, gone},
	} {
		_, err := knn.Assemble(context.Background(), knn.Options{Dims: 4}, c.ids, c.from, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	closed := false
	a, err := knn.Assemble(context.Background(), knn.Options{Dims: 4}, []uint64{1}, func(_ int, into []float32) error {
		if closed {
			return gone
		}
		into[0] = 1
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed = true
	if err := a.Content().Write(func([]byte) error { return nil }); !errors.Is(err, gone) {
		t.Errorf("a source that is gone when the index is written: %v", err)
	}
}

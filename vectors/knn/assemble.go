package knn

import (
	"context"
	"fmt"
	"slices"
)

// Source copies the vector of a row into one of as many numbers. Many goroutines may call it at once, and it gives the same
// each time; its error ends what it is called for.
type Source func(row int, into []float32) error

// Assembly is an index in its format whose exact vectors are still where they came from: it takes a third of the memory,
// and can only be written.
type Assembly struct{ image *image }

// Assemble makes the bytes of the index that Build makes of the same items: ids are those of the rows of from, ascending.
// progress and context are as those of Build; the errors are, too, and those of from.
func Assemble(ctx context.Context, o Options, ids []uint64, from Source, progress func(done, total int)) (*Assembly, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(ids) > MaxVectors {
		return nil, ErrFull
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return nil, fmt.Errorf("vector %016x: %w", ids[i], ErrTwice)
		}
		if ids[i] < ids[i-1] {
			return nil, fmt.Errorf("vector %016x comes before %016x: sort the rows by their IDs", ids[i-1], ids[i])
		}
	}
	v := &view{shape: shapeOf(o), entry: noSlot, live: len(ids)}
	x := newIndex(o, v)
	v.base = v.segmentOf(len(ids))
	wrong := make([]error, len(ids))
	l := x.linkerOf(v)
	l.stop = ctx.Done()
	l.parallel(len(ids), func(w *walker, i int) {
		if w.given == nil {
			w.given = make([]float32, v.dims)
		}
		if wrong[i] = from(i, w.given); wrong[i] == nil {
			wrong[i] = v.coder.check(w.given)
		}
		if wrong[i] == nil {
			v.coder.encodeRow(&w.query, w.given, w.rotated)
			v.fill(uint32(i), ids[i], &w.query)
		}
	})
	for i, err := range wrong {
		if err != nil {
			return nil, fmt.Errorf("vector %016x: %w", ids[i], err)
		}
	}
	order, err := x.finish(ctx, v, progress)
	if err != nil {
		return nil, err
	}
	a := &Assembly{x.image()}
	a.image.later = v.unitsOf(order, from)
	return a, a.image.sum()
}

// unitsOf hands out the exact vectors of slots, whose rows are given, as the format has them.
func (v *view) unitsOf(rows []uint32, from Source) func(func([]byte) error) error {
	const block = 64 // rows that are handed out at once
	return func(each func([]byte) error) error {
		exact, out := make([]float32, v.dims), make([]float32, block*v.dims)
		for some := range slices.Chunk(rows, block) {
			for i, row := range some {
				if err := from(int(row), exact); err != nil {
					return err
				}
				unit(out[i*v.dims:(i+1)*v.dims], exact)
			}
			if err := each(raw(out[:len(some)*v.dims])); err != nil {
				return err
			}
		}
		return nil
	}
}

// Size is how many bytes Write hands out.
func (a *Assembly) Size() int64 { return int64(a.image.size()) }

// Write hands out the bytes, piece by piece; a piece is valid during the call. The error is that of to, or of the source.
func (a *Assembly) Write(to func([]byte) error) error { return a.image.write(to) }

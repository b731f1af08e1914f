package knn

import (
	"context"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas/sections"
)

// Source copies the vector of a row into into. It must be safe for concurrent use and return the same vector each time; its
// error ends the call that uses it.
type Source func(row int, into []float32) error

// Assembly is an index in its format whose exact vectors are still where they came from: it takes a third of the memory,
// and can only be written.
type Assembly struct {
	content sections.Content
	rows    []uint32
}

// Rows returns the rows of the assembly's source in the order of slots: a graph places near vectors next to each other.
func (a *Assembly) Rows() []uint32 { return a.rows }

// Assemble makes the assembly of an index from the vectors that a source has in its rows, with their ids in ascending
// order. Its bytes are those of the index that Build makes of the same items. progress and context are as for Build;
// the errors are those of Build and of from.
func Assemble(ctx context.Context, o Options, ids []uint64, from Source, progress func(done, total int)) (*Assembly, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(ids) > maxVectors {
		return nil, errFull
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return nil, fmt.Errorf("vector %016x: %w", ids[i], ErrTwice)
		}
		if ids[i] < ids[i-1] {
			return nil, fmt.Errorf("vector %016x comes before %016x: sort the rows by their IDs", ids[i-1], ids[i])
		}
	}
	v := &vectorView{shape: shapeOf(o), entry: noSlot, live: len(ids)}
	if err := v.fitTo(len(ids), from); err != nil {
		return nil, err
	}
	x := newIndex(o, v)
	v.base = v.segmentOf(len(ids))
	wrong := make([]error, len(ids))
	l := x.linkerOf(v)
	l.stop = ctx.Done()
	l.parallel(len(ids), func(w *vectorWalker, i int) {
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
	err = x.linkerOf(v).calibrate(func(slot uint32, scratch []float32) ([]float32, error) {
		if err := from(int(order[slot]), scratch); err != nil {
			return nil, err
		}
		unit(scratch, scratch)
		return scratch, nil
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &Assembly{x.content(v.unitsOf(order, from)), order}, nil
}

// unitBlock is vectors of length 1, one after the other.
type unitBlock struct {
	exact, units []float32
	err          error
}

func (b *unitBlock) fill(dims int, rows []uint32, from Source) {
	if b.exact == nil {
		b.exact = make([]float32, dims)
	}
	b.units = slices.Grow(b.units[:0], len(rows)*dims)[:len(rows)*dims]
	for i, row := range rows {
		if b.err = from(int(row), b.exact); b.err != nil {
			return
		}
		unit(b.units[i*dims:(i+1)*dims], b.exact)
	}
}

// Content returns the bytes. Its error is that of the source.
func (a *Assembly) Content() sections.Content { return a.content }

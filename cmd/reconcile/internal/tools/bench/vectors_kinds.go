package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// kindAsked is how many queries each kind is asked, fewer than others: there are many kinds.
const kindAsked = 300

// recall measures the recall for vectors of all kinds.
func (v *vectorFigures) recall(ctx context.Context, _ []int) error { return v.eachKind(ctx, nil) }

// kinds: vectors of all kinds, compared with hnswlib. Dims are those of common embeddings.
func (v *vectorFigures) kinds(ctx context.Context, _ []int) error {
	program, missing := compileHNSW(ctx)
	if missing != nil {
		fmt.Fprintf(v.bench.out, "vectors beside hnswlib: skipped: %v\n", missing)
	} else {
		defer program.remove()
	}
	return v.eachKind(ctx, program)
}

// eachKind measures all kinds that -kinds asks for, or the vectors of the file that -vectors names.
func (v *vectorFigures) eachKind(ctx context.Context, program *hnswProgram) error {
	if v.bench.options.vectors != "" {
		d, err := readVectors(v.bench.options.vectors)
		if err != nil {
			return err
		}
		return v.kind(ctx, fmt.Sprintf("vectors %d x %d, %s", d.N, d.Dims, filepath.Base(v.bench.options.vectors)), d, program)
	}
	for _, n := range []int{fewVectors, flatVectors, listVectors, graphVectors} {
		for _, spec := range v.kindsOf(n) {
			if name := kindName(spec); v.asksKind(name) {
				if err := v.kind(ctx, name, spec.Make(), program); err != nil {
					return err
				}
			}
		}
	}
	if !v.asksKind(textsName) {
		return nil
	}
	d, err := embeddedTexts(ctx)
	if err != nil {
		return err
	}
	return v.kind(ctx, textsName, d, program)
}

// asksKind reports whether -kinds asks for the vectors with that name.
func (v *vectorFigures) asksKind(name string) bool { return v.bench.kindsAsked.MatchString(name) }

// kindName is the name of a kind in the figures.
func kindName(spec knntest.Spec) string {
	name := fmt.Sprintf("vectors %d x %d, %v", spec.N, spec.Dims, spec.Shape)
	if spec.Noise != 0 {
		name += fmt.Sprintf(" of noise %g", spec.Noise)
	}
	if spec.Foreign {
		name += ", foreign queries"
	}
	return name
}

func (v *vectorFigures) kindsOf(n int) (specs []knntest.Spec) {
	dims := []int{shortDims, 256, 384, vectorDims}
	for i, shape := range knntest.Shapes() {
		spec := v.spec(shape, n)
		spec.Dims, spec.Queries = dims[i%len(dims)], kindAsked
		specs = append(specs, spec)
		switch shape {
		case knntest.Clustered:
			spec.Foreign = true
			specs = append(specs, spec)
		case knntest.Copies:
			for _, spec.Noise = range []float32{0.01, 0.2} {
				specs = append(specs, spec)
			}
			spec.Dims = dims[0]
			for _, spec.Noise = range []float32{0.01, 0.1, 0.2} {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// kind measures one kind: recall by default, with more effort and with exact vectors, and, if there is a program, the speed
// compared with hnswlib.
func (v *vectorFigures) kind(ctx context.Context, name string, data *knntest.Data, program *hnswProgram) error {
	x := &vectorIndex{data: data}
	if _, err := x.build(knn.Options{Dims: data.Dims}); err != nil {
		return err
	}
	var err error
	if x.Index, err = knn.Open(x.bytes); err != nil {
		return err
	}
	truth := x.data.Truth(knn.DefaultK)
	for _, s := range []struct {
		name         string
		thorough     bool
		recall, self float64
	}{{"", false, 0.95, 0.999}, {", thorough", true, 0.99, 1}} {
		o := knn.SearchOptions{Thorough: s.thorough}
		p, err := x.ask(o, truth, 1)
		if err != nil {
			return err
		}
		v.bench.least(name+s.name, perSecond(p.mean), "", fmt.Sprintf("%.4f", p.recall), 100*p.recall, 100*s.recall, " %")
		if data.N <= flatVectors && data.Dims == shortDims && !s.thorough {
			v.bench.least(name+", by default", perSecond(p.mean), "", perSecond(p.mean), rate(p.mean), 8000, " q/s")
		}
		self, err := x.findsItself(o)
		if err != nil {
			return err
		}
		v.bench.least(name+s.name+", finds itself", "", "", fmt.Sprintf("%.4f", self), 100*self, 100*s.self, " %")
	}
	if program == nil {
		return nil
	}
	return v.beside(ctx, x, name, truth, program)
}

// findsItself is the share of up to 10,000 vectors that a search for them finds, or as many others that equal them as it may.
func (x *vectorIndex) findsItself(o knn.SearchOptions) (float64, error) {
	step, asked, found := max(1, x.data.N/10_000), 0, 0
	for row := 0; row < x.data.N; row += step {
		hits, err := x.Search(x.data.Vector(row), o)
		if err != nil {
			return 0, err
		}
		asked++
		equal := 0
		for _, h := range hits {
			if x.row(h.ID) == uint32(row) {
				equal = knn.DefaultK
			} else if h.Similarity > 1-1e-6 {
				equal++
			}
		}
		if equal >= knn.DefaultK {
			found++
		}
	}
	return float64(found) / float64(asked), nil
}

// beside compares the rates at equal recall, on one thread, alternately, by the processor time of the thread.
func (v *vectorFigures) beside(ctx context.Context, x *vectorIndex, name string, truth [][]knntest.Neighbor, program *hnswProgram) error {
	theirs, err := program.start(ctx, x.data)
	if err != nil {
		return err
	}
	defer theirs.stop()
	var ours, other []point
	for _, ef := range append([]int{knn.DefaultK}, efforts...) {
		oursDone, otherDone := enough(ours), enough(other)
		if oursDone && otherDone {
			break
		}
		for run := range besideRuns {
			if !oursDone {
				o := knn.SearchOptions{Ef: ef}
				p, err := x.ask(o, truth, 1)
				if err != nil {
					return err
				}
				if p.mean, err = x.spent(o); err != nil {
					return err
				}
				ours = fastest(ours, p, run == 0)
			}
			if !otherDone {
				p, err := theirs.ask(ef, truth, 1)
				if err != nil {
					return err
				}
				other = fastest(other, p, run == 0)
			}
		}
	}
	const recall = 0.95
	a, reached := at(ours, recall)
	b, reachedToo := at(other, recall)
	if !reached || !reachedToo {
		v.bench.least(name+", recall 0.95, x hnswlib", fmt.Sprint(reached), fmt.Sprint(reachedToo), "not reached", 0, 0, "")
		return nil
	}
	times := float64(b.mean) / float64(a.mean)
	v.bench.least(name+", recall 0.95, x hnswlib", perSecond(a.mean), perSecond(b.mean), fmt.Sprintf("%.2f x", times), times, 1, " x")
	return nil
}

// spent is the mean processor time of a search.
func (x *vectorIndex) spent(o knn.SearchOptions) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o.Into = make([]knn.Hit, 0, knn.DefaultK)
	start := threadTime()
	for q := range x.data.Queries {
		if _, err := x.Search(x.data.Query(q), o); err != nil {
			return 0, err
		}
	}
	return (threadTime() - start) / time.Duration(x.data.Queries), nil
}

// besideRuns is how often both are asked in turn. The fastest run counts: what other programs take from one says nothing.
const besideRuns = 5

// fastest adds a point to a curve if it is the first with its effort; else it replaces the last one by it if it is faster.
func fastest(curve []point, p point, first bool) []point {
	switch last := len(curve) - 1; {
	case first:
		return append(curve, p)
	case p.mean < curve[last].mean:
		curve[last] = p
	}
	return curve
}

// enough reports whether a curve goes far enough.
func enough(curve []point) bool { return len(curve) > 0 && curve[len(curve)-1].recall > 0.96 }

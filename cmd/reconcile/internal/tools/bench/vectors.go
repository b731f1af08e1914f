package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reconcile.dev/reconcile/vectors/kernel"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// Sizes of what vectors are measured with.
const (
	graphVectors = 100_000
	listVectors  = knn.DefaultGraphFrom - 1 // the most without a graph
	flatVectors  = 10_000
	fewVectors   = 3000
	vectorDims   = 768
	shortDims    = 100
	vectorAsked  = 1000 // queries
)

// vectorFigures measures the search among vectors, on vectors that the first figure which needs them makes.
type vectorFigures struct {
	bench   *bench
	indexes map[knntest.Spec]*vectorIndex
	related map[int]*nodeIndex // by the number of nodes
}

// vectorIndex is an index in a mapped file, and the cost of building it.
type vectorIndex struct {
	*knn.Index
	data  *knntest.Data
	bytes []byte
	path  string
	built usage
	scans []time.Duration // what exact searches among float32 vectors took since the last curve began
}

// vectors are the figures of the vector index.
func (b *bench) vectors() []part {
	v := &vectorFigures{bench: b, indexes: map[knntest.Spec]*vectorIndex{}, related: map[int]*nodeIndex{}}
	return []part{
		{"vectors search", v.search}, {"vectors exact", v.exact}, {"vectors filtered", v.filtered}, {"vectors insert", v.insert},
		{"vectors file", v.file}, {"vectors flat", v.flat}, {"vectors build", v.build}, {"vectors text-like", v.textLike},
		{"vectors kinds", v.kinds}, {"vectors recall", v.recall}, {"vectors hybrid", v.hybrid}, {"vectors walks", v.walks}, {"vectors opened", v.opened}, {"vectors words", v.words},
		{"vectors cold", v.coldStd}, {"vectors names", v.names}, {"vectors edits", v.edited}, {"vectors watched", v.watchedIndex}, {"vectors large", v.coldLarge},
		{"vectors kubernetes", v.kubernetes}, {"vectors observations", v.indexedMemory},
	}
}

func (v *vectorFigures) spec(shape knntest.Shape, n int) knntest.Spec {
	return knntest.Spec{Shape: shape, N: n, Queries: vectorAsked, Dims: vectorDims, Seed: v.bench.seed}
}

// vectorItems gives the vectors IDs that have nothing to do with their order.
func vectorItems(d *knntest.Data) []knn.Item {
	items := make([]knn.Item, d.N)
	for i := range items {
		items[i] = knn.Item{ID: vectorID(i), Vector: d.Vector(i)}
	}
	return items
}

// vectorID is one to one: the factor is odd.
func vectorID(row int) uint64 { return uint64(row) * 0x9e3779b97f4a7c15 }

// index builds the index of a spec, or returns the one that was.
func (v *vectorFigures) index(spec knntest.Spec) (*vectorIndex, error) {
	if x := v.indexes[spec]; x != nil {
		return x, nil
	}
	x := &vectorIndex{data: spec.Make(), path: filepath.Join(v.bench.trees, fmt.Sprintf("vectors-%v-%d", spec.Shape, spec.N))}
	var err error
	if x.built, err = x.build(knn.Options{}); err != nil {
		return nil, err
	}
	if err := os.WriteFile(x.path, x.bytes, 0o666); err != nil {
		return nil, err
	}
	// As in use: mapped from the file.
	mapped, _, err := mapVectors(x.path)
	if err != nil {
		return nil, err
	}
	if x.Index, err = knn.Open(mapped); err != nil {
		return nil, err
	}
	x.bytes = mapped
	x.scanOnce()
	v.indexes[spec] = x
	return x, nil
}

// build sets the bytes to those of a new index.
func (x *vectorIndex) build(o knn.Options) (usage, error) {
	items := vectorItems(x.data)
	start, cpu := time.Now(), processorTime()
	index, err := knn.Build(context.Background(), o, items, nil)
	if err != nil {
		return usage{}, err
	}
	took := usage{wall: time.Since(start), cpu: processorTime() - cpu}
	x.bytes = index.AppendTo(nil)
	return took, nil
}

// scanOnce measures the comparison of a query with each vector, by the best float32 kernels: what all searches are
// measured by.
func (x *vectorIndex) scanOnce() {
	defer kernel.Use(kernel.Use(slices.Max(kernel.Levels())))
	q := x.data.Query(len(x.scans) % x.data.Queries)
	start := time.Now()
	best := make([]float32, knn.DefaultK) // ascending
	for row := range x.data.N {
		if s := kernel.Dot(q, x.data.Vector(row)); s > best[0] {
			at, _ := slices.BinarySearch(best, s)
			copy(best, best[1:at])
			best[at-1] = s
		}
	}
	x.scans = append(x.scans, time.Since(start))
}

// scan is what an exact search among float32 vectors takes. Scans alternate with searches: what memory gives differs from
// one second to the next on a machine that others use, too.
func (x *vectorIndex) scan() time.Duration { return quantile(x.scans, 0.5) }

// point is how a search with some effort does: its recall@10, and the time of a query on the average and at the 99th
// percentile.
type point struct {
	recall    float64
	mean, p99 time.Duration
}

// ask searches for all queries, once for the results and runs times for the time.
func (x *vectorIndex) ask(o knn.SearchOptions, truth [][]knntest.Neighbor, runs int) (point, error) {
	var p point
	o.Into = make([]knn.Hit, 0, knn.DefaultK)
	rowOf := make([]uint32, 0, knn.DefaultK)
	for q := range x.data.Queries {
		hits, err := x.Search(x.data.Query(q), o)
		if err != nil {
			return p, err
		}
		rowOf = rowOf[:0]
		for _, h := range hits {
			rowOf = append(rowOf, x.row(h.ID))
		}
		p.recall += x.data.Recall(q, truth[q], rowOf) / float64(x.data.Queries)
	}
	var means, tails []time.Duration
	for range runs {
		x.scanOnce()
		x.scanOnce()
		var each []time.Duration
		sum := time.Duration(0)
		for q := range x.data.Queries {
			start := time.Now()
			if _, err := x.Search(x.data.Query(q), o); err != nil {
				return p, err
			}
			took := time.Since(start)
			each, sum = append(each, took), sum+took
		}
		means, tails = append(means, sum/time.Duration(len(each))), append(tails, quantile(each, 0.99))
	}
	p.mean, p.p99 = quantile(means, 0.5), quantile(tails, 0.5)
	return p, nil
}

// inverse is the number whose product with the factor of vectorID is 1, modulo 2^64.
const inverse = 0xf1de83e19937733d

// row returns the row from which an ID was made.
func (x *vectorIndex) row(id uint64) uint32 { return uint32(id * inverse) }

// efforts are how many candidates searches keep that a curve goes through.
var efforts = []int{12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192}

// curve measures searches of growing effort, until one finds nearly all.
func (x *vectorIndex) curve(o knn.SearchOptions, truth [][]knntest.Neighbor, runs int) ([]point, error) {
	x.scans = nil
	var all []point
	for _, o.Ef = range efforts {
		p, err := x.ask(o, truth, runs)
		if err != nil {
			return nil, err
		}
		if all = append(all, p); p.recall > 0.993 {
			break
		}
	}
	return all, nil
}

// at is the point of a curve with a recall, interpolated; the first one if that already finds more. ok is false if no
// effort was enough.
func at(curve []point, recall float64) (p point, ok bool) {
	for i, above := range curve {
		if above.recall < recall {
			continue
		}
		if i == 0 {
			return above, true
		}
		below := curve[i-1]
		part := (recall - below.recall) / (above.recall - below.recall)
		between := func(a, b time.Duration) time.Duration {
			return time.Duration(float64(a) * math.Pow(float64(b)/float64(a), part))
		}
		return point{recall, between(below.mean, above.mean), between(below.p99, above.p99)}, true
	}
	return point{}, false
}

// rate is how many searches there are in a second.
func rate(each time.Duration) float64 { return float64(time.Second) / float64(each) }

func perSecond(each time.Duration) string { return fmt.Sprintf("%.0f q/s", rate(each)) }

// goal is what a search is to reach at a recall: searches a second, also as a multiple of exact scans, and the time of
// nearly all.
type goal struct {
	recall, rate, times float64
	p99                 time.Duration
}

// curveRows prints the figures of a curve.
func (v *vectorFigures) curveRows(x *vectorIndex, what string, curve []point, goals []goal) {
	for _, g := range goals {
		name := fmt.Sprintf("vectors %d, %s, recall %.2f", x.data.N, what, g.recall)
		p, ok := at(curve, g.recall)
		if !ok {
			v.bench.least(name, "not reached", perSecond(x.scan()), "0 q/s", 0, g.rate, " q/s")
			continue
		}
		times := float64(x.scan()) / float64(p.mean)
		v.bench.least(name, perSecond(p.mean), "", perSecond(p.mean), rate(p.mean), g.rate, " q/s")
		v.bench.least(name+", x scan", perSecond(p.mean), perSecond(x.scan()), fmt.Sprintf("%.0f x", times), times, g.times, " x")
		v.bench.row(name+", p99", short(p.p99), "", short(p.p99), float64(p.p99)/1e3, float64(g.p99)/1e3, " µs")
	}
}

// goals are the goals for each level.
func goals(level kernel.Instructions) []goal {
	switch level {
	case kernel.AVX512:
		return []goal{{0.95, 13000, 380, 150 * time.Microsecond}, {0.99, 6500, 190, 250 * time.Microsecond}}
	case kernel.AVX2:
		return []goal{{0.95, 4600, 135, 0}, {0.99, 2200, 65, 0}}
	}
	return []goal{{recall: 0.95}, {recall: 0.99}}
}

// search: approximate searches with each set of instructions, by one thread, compared with an exact scan.
func (v *vectorFigures) search(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	truth := x.data.Truth(knn.DefaultK)
	for _, level := range slices.Backward(kernel.Levels()) {
		before := kernel.Use(level)
		runs := max(1, v.bench.runs/2)
		if level == kernel.Portable {
			runs = 1
		}
		curve, err := x.curve(knn.SearchOptions{}, truth, runs)
		kernel.Use(before)
		if err != nil {
			return err
		}
		v.curveRows(x, level.String(), curve, goals(level))
	}
	return v.settings(x, truth)
}

// settings prints the recall of the default and of the thorough search.
func (v *vectorFigures) settings(x *vectorIndex, truth [][]knntest.Neighbor) error {
	for _, s := range []struct {
		name    string
		options knn.SearchOptions
		bound   float64
	}{{"by default", knn.SearchOptions{}, 0.95}, {"thorough", knn.SearchOptions{Thorough: true}, 0.99}} {
		p, err := x.ask(s.options, truth, 1)
		if err != nil {
			return err
		}
		v.bench.least(fmt.Sprintf("vectors %d, %v, %s", x.data.N, x.data.Shape, s.name), perSecond(p.mean), perSecond(x.scan()),
			fmt.Sprintf("%.4f", p.recall), 100*p.recall, 100*s.bound, " %")
	}
	return nil
}

// textLike: the same on vectors like embeddings, which do not fit codes unless they are rotated.
func (v *vectorFigures) textLike(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.TextLike, graphVectors))
	if err != nil {
		return err
	}
	truth := x.data.Truth(knn.DefaultK)
	curve, err := x.curve(knn.SearchOptions{}, truth, max(1, v.bench.runs/2))
	if err != nil {
		return err
	}
	v.curveRows(x, "text-like", curve, goals(kernel.Portable))
	return v.settings(x, truth)
}

// exact: searches that find the nearest vectors for certain.
func (v *vectorFigures) exact(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	p, err := x.ask(knn.SearchOptions{Exact: true}, x.data.Truth(knn.DefaultK), 1)
	if err != nil {
		return err
	}
	v.bench.row(fmt.Sprintf("vectors %d, exact", x.data.N), short(p.mean), short(x.scan()), short(p.mean), ms(p.mean), 13, " ms")
	v.bench.least(fmt.Sprintf("vectors %d, exact, recall", x.data.N), "", "", fmt.Sprintf("%.4f", p.recall), 100*p.recall, 100, " %")
	return nil
}

// filtered: searches among some of the vectors, chosen by chance.
func (v *vectorFigures) filtered(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	for _, f := range []struct{ percent, bound float64 }{{50, 6000}, {10, 1500}, {2, 8000}} {
		limit := uint64(f.percent / 100 * math.MaxUint64)
		match := func(row uint32) bool { return uint64(row)*inverse < limit }
		filter := &knn.Bitmap{}
		for row := range x.data.N {
			if slot, ok := x.Slot(vectorID(row)); ok && match(uint32(row)) {
				filter.Add(slot)
			}
		}
		truth := x.data.TruthWhere(knn.DefaultK, match)
		curve, err := x.curve(knn.SearchOptions{Filter: filter}, truth, max(1, v.bench.runs/2))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("vectors %d, %g %% match, recall 0.95", x.data.N, f.percent)
		if p, ok := at(curve, 0.95); ok {
			v.bench.least(name, perSecond(p.mean), perSecond(x.scan()), perSecond(p.mean), rate(p.mean), f.bound, " q/s")
		} else {
			v.bench.least(name, "not reached", "", "0 q/s", 0, f.bound, " q/s")
		}
	}
	return nil
}

// flat: few vectors, which need no graph, and are ready at once, also after one more. How soon a snapshot of them answers is
// measured as well.
func (v *vectorFigures) flat(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, flatVectors))
	if err != nil {
		return err
	}
	p, err := x.ask(knn.SearchOptions{}, x.data.Truth(knn.DefaultK), v.bench.runs)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("vectors %d", x.data.N)
	v.bench.least(name, perSecond(p.mean), perSecond(x.scan()), perSecond(p.mean), rate(p.mean), 8000, " q/s")
	v.bench.least(name+", recall", "", "", fmt.Sprintf("%.4f", p.recall), 100*p.recall, 99, " %")
	v.bench.row(name+", ready after", short(x.built.wall), "", short(x.built.wall), ms(x.built.wall), 150, " ms")
	if x.built.cpu > 0 {
		v.bench.row(name+", ready after, processor time", short(x.built.cpu), "", short(x.built.cpu), ms(x.built.cpu), 300, " ms")
	}
	if err := v.opens(x, 2); err != nil {
		return err
	}
	return v.insertInto(x)
}

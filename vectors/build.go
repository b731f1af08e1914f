package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Options say how an index is built and opened.
type Options struct {
	// Embedder makes the vectors; nil is the built-in one, trained on what is indexed.
	Embedder embed.Embedder
	// WordsOnly makes an index without vectors, which takes a small part of the time.
	WordsOnly bool
	// Dims is how many numbers a vector has; 768 by default. With an Embedder it must be what that makes.
	Dims int
	// Tools names helpers that inputs were made with, and their versions.
	Tools string
	// Threads is how many goroutines work, by default as many as there are processors. The result does not depend on it.
	Threads int
	// Progress, unless nil, is told what is done: texts of total in a step.
	Progress func(step string, done, total int)
	// Warn, unless nil, hears of what goes on without something.
	Warn func(error)
}

func (o Options) withDefaults() Options {
	if o.Dims == 0 {
		o.Dims = knn.DefaultDims
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return o
}

// Build makes the snapshot of some inputs, which is these bytes one after the other. Equal inputs make equal bytes, in
// whatever order they are, with any number of threads, as long as the embedder makes equal vectors. An embedder that
// cannot be had makes a snapshot without vectors, and a warning.
func Build(ctx context.Context, inputs []Input, o Options) ([][]byte, error) {
	o = o.withDefaults()
	j := join(inputs)
	b := &building{Options: o, ctx: ctx}
	c := &container{}
	meta := Meta{Inputs: DigestInputs(inputs), Tools: o.Tools}
	nodes := make([]graph.Node, len(j.items))
	for i := range j.items {
		nodes[i] = j.items[i].Node
	}
	o.Progress("relate", 0, len(nodes))
	g, refused := graph.Build(graph.Parts{Nodes: nodes, Edges: j.edges})
	for _, err := range refused {
		o.Warn(err)
	}
	if g == nil {
		return nil, errors.Join(refused...)
	}
	items := inOrder(g, j.items)
	words, err := b.words(items)
	if err != nil {
		return nil, err
	}
	vectors, trained, err := b.vectors(items, &meta)
	if err != nil {
		return nil, err
	}
	c.add(sectionMeta, meta.encode())
	c.add(sectionGraph, g.AppendTo(nil))
	c.add(sectionWords, words.Bytes())
	c.add(sectionTopics, topics(items))
	c.add(sectionInputs, encodeInputs(g, inputs))
	c.add(sectionAliases, encodeAliases(g, j.aliases))
	c.add(sectionOpen, encodeEdges(j.open))
	if vectors != nil {
		c.add(sectionEmbedder, trained)
		c.add(sectionVectors, vectors.AppendTo(nil))
	}
	return c.parts(), nil
}

// inOrder are the items in the order of the graph's nodes: item i is node i.
func inOrder(g *graph.Graph, items []graph.Item) []*graph.Item {
	byID := make(map[string]*graph.Item, len(items))
	for i := range items {
		byID[items[i].ID] = &items[i]
	}
	out := make([]*graph.Item, 0, g.Nodes())
	for r := range g.All() {
		out = append(out, byID[g.ID(r)])
	}
	return out
}

type building struct {
	Options
	ctx context.Context
}

func (b *building) words(items []*graph.Item) (*lexical.Index, error) {
	b.Progress("words", 0, len(items))
	return lexical.Build(documents(items))
}

func documents(items []*graph.Item) []lexical.Document {
	docs := make([]lexical.Document, len(items))
	for i, it := range items {
		docs[i] = lexical.Document{Title: it.Name + " " + it.Title, Body: it.Body}
	}
	return docs
}

// topics is the section of the filters: the terms of each domain.
func topics(items []*graph.Item) []byte {
	keys := map[graph.Domain][]uint64{}
	for _, it := range items {
		d := it.Type.Domain()
		for _, t := range lexical.Terms(it.Name + " " + it.Title + "\n" + it.Body) {
			keys[d] = append(keys[d], filter.Key(t))
		}
	}
	return filter.Build(keys).AppendTo(nil)
}

// vectors embeds all texts. Without an embedder that answers there are none, and that is a warning.
func (b *building) vectors(items []*graph.Item, meta *Meta) (*knn.Index, []byte, error) {
	if b.WordsOnly {
		return nil, nil, nil
	}
	var withText []*graph.Item
	for _, it := range items {
		if told(it) {
			withText = append(withText, it)
		}
	}
	e := b.Embedder
	var trained []byte
	if e == nil {
		b.Progress("learn words", 0, len(withText))
		t := embed.Train(eachText(withText), b.Dims)
		trained, e = t.AppendTo(nil), t
	}
	made, err := b.embed(e, withText)
	if errors.Is(err, embed.ErrUnavailable) {
		b.Warn(fmt.Errorf("search goes by words only: %w", err))
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	x, err := knn.Build(knn.Options{Dims: b.Dims, Threads: b.Threads}, made, func(done, total int) { b.Progress("vectors", done, total) })
	if err != nil {
		return nil, nil, err
	}
	meta.Model, meta.Dims = e.Model(), b.Dims
	return x, trained, nil
}

func eachText(items []*graph.Item) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, it := range items {
			if !yield(text(it)) {
				return
			}
		}
	}
}

func texts(items []*graph.Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = text(it)
	}
	return out
}

// batch is how many texts are embedded at a time.
const batch = 256

// embed makes the vectors of items, sorted by the hash of their ids.
func (b *building) embed(e embed.Embedder, items []*graph.Item) ([]knn.Item, error) {
	out := make([]knn.Item, len(items))
	type job struct{ from, to int }
	jobs := make(chan job)
	ctx, stop := context.WithCancelCause(b.ctx)
	defer stop(nil)
	var mu sync.Mutex
	done := 0
	var workers sync.WaitGroup
	for range b.Threads {
		workers.Go(func() {
			for j := range jobs {
				vs, err := e.Embed(ctx, texts(items[j.from:j.to]))
				if err == nil {
					err = checkVectors(vs, j.to-j.from, b.Dims)
				}
				if err != nil {
					stop(err)
					continue
				}
				for i, v := range vs {
					out[j.from+i] = knn.Item{ID: graph.HashID(items[j.from+i].ID), Vector: v}
				}
				mu.Lock()
				done += len(vs)
				b.Progress("embed", done, len(items))
				mu.Unlock()
			}
		})
	}
	for from := 0; from < len(items) && ctx.Err() == nil; from += batch {
		jobs <- job{from, min(from+batch, len(items))}
	}
	close(jobs)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b knn.Item) int { return cmp.Compare(a.ID, b.ID) })
	// Of two ids with one hash, which is all but impossible, the second is found by its words only.
	return slices.CompactFunc(out, func(a, b knn.Item) bool { return a.ID == b.ID }), nil
}

func checkVectors(vs [][]float32, n, dims int) error {
	if len(vs) != n {
		return fmt.Errorf("the embedder made %d vectors of %d texts", len(vs), n)
	}
	for _, v := range vs {
		if len(v) != dims {
			return fmt.Errorf("the embedder makes vectors of %d numbers, and index.dimensions is %d; set it to what the model gives", len(v), dims)
		}
	}
	return nil
}

// known is an input as a snapshot has it.
type known struct {
	digest uint64
	nodes  []graph.Ref
}

func encodeInputs(g *graph.Graph, inputs []Input) []byte {
	sorted := slices.Clone(inputs)
	slices.SortFunc(sorted, func(a, b Input) int { return cmp.Compare(a.Name, b.Name) })
	w := &writer{}
	w.number(uint64(len(sorted)))
	for _, in := range sorted {
		w.string(in.Name)
		w.fixed(in.Digest)
		var refs []graph.Ref
		for i := range in.Items {
			if r, ok := g.Find(in.Items[i].ID); ok && in.Items[i].Type != graph.Import {
				refs = append(refs, r)
			}
		}
		w.number(uint64(len(refs)))
		for _, r := range refs {
			w.number(uint64(r))
		}
	}
	return w.to
}

func decodeInputs(data []byte, nodes int) (map[string]known, error) {
	r := &reader{from: data}
	out := make(map[string]known)
	for range r.count(10) {
		name, k := r.string(), known{digest: r.fixed()}
		for range r.count(1) {
			ref := r.small()
			if ref >= nodes {
				r.fail()
			}
			k.nodes = append(k.nodes, graph.Ref(ref))
		}
		out[name] = k
	}
	if r.bad || len(r.from) > 0 {
		return nil, ErrDamaged
	}
	return out, nil
}

// encodeAliases writes the hashes of aliases, sorted, each with its node: 12 bytes.
func encodeAliases(g *graph.Graph, aliases map[string]string) []byte {
	type row struct {
		hash uint64
		ref  graph.Ref
	}
	rows := make([]row, 0, len(aliases))
	for a, id := range aliases {
		if r, ok := g.Find(id); ok {
			rows = append(rows, row{graph.HashID(a), r})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ref, b.ref)) })
	out := make([]byte, 0, 12*len(rows))
	for _, r := range rows {
		out = binary.LittleEndian.AppendUint64(out, r.hash)
		out = binary.LittleEndian.AppendUint32(out, uint32(r.ref))
	}
	return out
}

func encodeEdges(edges []graph.Edge) []byte {
	w := &writer{}
	w.number(uint64(len(edges)))
	for i := range edges {
		w.edge(&edges[i])
	}
	return w.to
}

func decodeEdges(data []byte) ([]graph.Edge, error) {
	r := &reader{from: data}
	var out []graph.Edge
	for range r.count(5) {
		out = append(out, r.edge())
	}
	if r.bad || len(r.from) > 0 {
		return nil, ErrDamaged
	}
	return out, nil
}

package vectors

import (
	"cmp"
	"context"
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
	// Embedder makes the vectors, each of length 1; nil is the built-in one, trained on what is indexed.
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
// cannot be had makes a snapshot without vectors, and a warning. The error is that of the context, or of an embedder whose
// vectors cannot be used.
func Build(ctx context.Context, inputs []Input, o Options) ([][]byte, error) {
	b := &building{Options: o.withDefaults(), ctx: ctx}
	a := assemble(inputs, b.Warn)
	g, err := b.relate(a)
	if err != nil {
		return nil, err
	}
	items := inOrder(g, a.items)
	meta := Meta{Inputs: DigestInputs(inputs), Tools: o.Tools}
	c := &container{}
	c.add(sectionGraph, g.AppendTo(nil))
	c.add(sectionHoldings, encodeHoldings(g, a))
	c.add(sectionAliases, encodeAliases(g, a))
	loose, names := encodeLoose(a)
	c.add(sectionLoose, loose)
	c.add(sectionLooseNames, names)
	c.add(sectionFacts, encodeFacts(a.facts))
	var words *lexical.Index
	var wrong error
	var besides sync.WaitGroup
	besides.Go(func() {
		words, wrong = lexical.Build(documents(items))
		c.add(sectionTopics, filter.Build(topics(items)).AppendTo(nil))
	})
	vectors, trained, err := b.vectors(items, &meta)
	besides.Wait()
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	c.add(sectionWords, words.Bytes())
	c.add(sectionMeta, meta.encode())
	if vectors != nil {
		c.add(sectionEmbedder, trained)
		c.add(sectionVectors, vectors.AppendTo(nil))
	}
	return c.parts(), nil
}

// relate makes the graph. What its rules refuse is left out, with a warning where somebody wrote it down.
func (b *building) relate(a *assembly) (*graph.Graph, error) {
	parts := graph.Parts{Nodes: make([]graph.Node, len(a.items)), Edges: a.edges}
	for i := range a.items {
		parts.Nodes[i] = a.items[i].Node
	}
	for _, f := range a.facts {
		parts.Provenances = append(parts.Provenances, f.provenances...)
		parts.Conflicts = append(parts.Conflicts, f.conflicts...)
	}
	b.Progress("relate", 0, len(a.items))
	g, refused := graph.Build(parts)
	for _, err := range refused {
		b.Warn(err)
	}
	if g == nil {
		return nil, errors.Join(refused...)
	}
	return g, nil
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

// documents are what is found by words: the name stands in the title, too.
func documents(items []*graph.Item) []lexical.Document {
	docs := make([]lexical.Document, len(items))
	for i, it := range items {
		docs[i] = lexical.Document{Title: it.Name + " " + it.Title, Body: it.Body}
	}
	return docs
}

// topics are the terms of each domain.
func topics(items []*graph.Item) map[graph.Domain][]uint64 {
	keys := map[graph.Domain][]uint64{}
	seen := map[graph.Domain]map[string]bool{}
	for _, d := range graph.Domains {
		seen[d] = map[string]bool{}
	}
	for _, it := range items {
		d := it.Type.Domain()
		for _, t := range lexical.Terms(it.Name + " " + it.Title + "\n" + it.Body) {
			if !seen[d][t] {
				seen[d][t] = true
				keys[d] = append(keys[d], filter.Key(t))
			}
		}
	}
	return keys
}

// vectors embeds all texts. Without an embedder that answers there are none, and that is a warning.
func (b *building) vectors(items []*graph.Item, meta *Meta) (*knn.Index, []byte, error) {
	if b.WordsOnly {
		return nil, nil, nil
	}
	items = slices.DeleteFunc(slices.Clone(items), func(it *graph.Item) bool { return !hasText(it) })
	e := b.Embedder
	var trained []byte
	if e == nil {
		b.Progress("learn words", 0, len(items))
		t := embed.Train(texts(items), b.Dims)
		trained, e = t.AppendTo(nil), t
	}
	made, err := b.embed(e, items)
	if errors.Is(err, embed.ErrUnavailable) {
		b.Warn(fmt.Errorf("search goes by words only, until the index is rebuilt: %w", err))
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	x, err := knn.Build(knn.Options{Dims: b.Dims, Threads: b.Threads}, made,
		func(done, total int) { b.Progress("vectors", done, total) })
	if err != nil {
		return nil, nil, err
	}
	meta.Model, meta.Dims = e.Model(), b.Dims
	return x, trained, nil
}

func texts(items []*graph.Item) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, it := range items {
			if !yield(textOf(it)) {
				return
			}
		}
	}
}

// batch is how many texts are embedded at a time.
const batch = 256

// embed makes the vectors of items, sorted by the hash of their ids.
func (b *building) embed(e embed.Embedder, items []*graph.Item) ([]knn.Item, error) {
	out := make([]knn.Item, len(items))
	batches := make(chan int)
	ctx, stop := context.WithCancelCause(b.ctx)
	defer stop(nil)
	var mu sync.Mutex // of done and Progress
	done := 0
	var workers sync.WaitGroup
	for range b.Threads {
		workers.Go(func() {
			for from := range batches {
				to := min(from+batch, len(items))
				if err := b.embedBatch(ctx, e, items[from:to], out[from:to]); err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				done += to - from
				b.Progress("embed", done, len(items))
				mu.Unlock()
			}
		})
	}
	for from := 0; from < len(items) && ctx.Err() == nil; from += batch {
		batches <- from
	}
	close(batches)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b knn.Item) int { return cmp.Compare(a.ID, b.ID) })
	// Of two ids with one hash, which is all but impossible, the second is found by its words only.
	return slices.CompactFunc(out, func(a, b knn.Item) bool { return a.ID == b.ID }), nil
}

func (b *building) embedBatch(ctx context.Context, e embed.Embedder, items []*graph.Item, out []knn.Item) error {
	vectors, err := e.Embed(ctx, slices.Collect(texts(items)))
	if err == nil {
		err = checkVectors(vectors, len(items), b.Dims)
	}
	if err != nil {
		return err
	}
	for i, v := range vectors {
		out[i] = knn.Item{ID: graph.HashID(items[i].ID), Vector: v}
	}
	return nil
}

func checkVectors(vs [][]float32, n, dims int) error {
	if len(vs) != n {
		return fmt.Errorf("the embedder made %d vectors of %d texts", len(vs), n)
	}
	for _, v := range vs {
		if len(v) != dims {
			return fmt.Errorf("the embedder makes vectors of %d numbers, and index.dimensions is %d; set it to what the model gives",
				len(v), dims)
		}
	}
	return nil
}

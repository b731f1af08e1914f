package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Options configure how an index is built and opened.
type Options struct {
	// Embedder makes the vectors, each of length 1; nil means the built-in one, trained on the indexed texts.
	Embedder embed.Embedder
	// WordsOnly makes an index without vectors, which takes a small part of the time.
	WordsOnly bool
	// Dims is how many numbers a vector has; 768 by default. With an Embedder it must be what that makes.
	Dims int
	// M and EfConstruction configure the links between vectors, see [knn.Options]; 0 means its default. A snapshot that is
	// opened must have the same.
	M, EfConstruction int
	// EfSearch is how many candidates a search keeps, EfThorough the same for a thorough one, which keeps no fewer; 0 is what
	// the snapshot was calibrated to.
	EfSearch, EfThorough int
	// Sound says that these very bytes were opened and confirmed before, or were just written: their sums, which takes as long
	// as to read all of them, are not compared again, unless Verify is called.
	Sound bool
	// Tools names helpers that inputs were made with, and their versions.
	Tools string
	// Threads is the number of worker goroutines, by default the number of processors. The result does not depend on
	// it.
	Threads int
	// Progress, unless nil, is called with the progress of a step: done texts of total.
	Progress func(step string, done, total int)
	// Warn, unless nil, is called with each problem that does not stop the work.
	Warn func(error)
	// Scratch, unless nil, holds the vectors of an index that is built, instead of memory: 4 bytes for each number.
	Scratch Scratch
	// Forget, unless nil, is called when many bodies of items were read: those that lie in a mapped file can be taken out
	// of memory, and are read again later.
	Forget func()
}

// Scratch is a file for exclusive use. It is written from offset 0, and must stay until the result is written.
type Scratch interface {
	io.ReaderAt
	io.WriterAt
}

// linkedFrom is from how many vectors on they are linked. A search among fewer, in lists, takes a few milliseconds, which is little
// of a command that scans the files first; and lists are made in a fifth of the time that links take.
const linkedFrom = 100_000

// linking returns the options for linking vectors.
func (o *Options) linking() knn.Options {
	return knn.Options{Dims: o.Dims, M: o.M, EfConstruction: o.EfConstruction, GraphFrom: linkedFrom, Threads: o.Threads}
}

// Snapshot is an index that was built, to be written. Some of it may be in a Scratch.
type Snapshot struct{ content sections.Content }

// Build makes the snapshot of some inputs. Equal inputs give equal bytes, in any order and with any number of threads,
// if the embedder gives equal vectors. If the embedder is not available, the snapshot has no vectors, and Build warns.
// The error is that of the context, of the Scratch, or of an embedder with unusable vectors.
func Build(ctx context.Context, inputs []Input, o Options) (*Snapshot, error) {
	b := &building{Options: o.withDefaults(), ctx: ctx}
	a := assemble(inputs, b.Warn)
	items := a.nodes()
	c := &parts{}
	var graphs, words sync.WaitGroup
	var wrong [2]error
	b.Progress("relate", 0, len(a.items))
	var refused []error
	graphs.Go(func() { refused, wrong[0] = a.relations(c) })
	words.Go(func() {
		wrong[1] = addWords(items, c)
		b.Forget()
	})
	graphs.Wait()
	for _, err := range refused {
		b.Warn(err)
	}
	if wrong[0] != nil {
		words.Wait()
		return nil, wrong[0]
	}
	meta := Meta{Inputs: DigestInputs(inputs), Tools: o.Tools}
	err := b.vectors(items, c, &meta)
	words.Wait()
	b.Forget()
	if err = errors.Join(err, wrong[1]); err != nil {
		return nil, err
	}
	c.add(sectionMeta, meta.encode())
	return &Snapshot{c.content()}, nil
}

// addWords adds the words of items.
func addWords(items []*graph.Item, c *parts) error {
	words, err := lexical.Build(documents(items))
	if err != nil {
		return err
	}
	known, err := topics(words, items)
	if err != nil {
		return err
	}
	c.add(sectionTopics, filter.Build(known).AppendTo(nil))
	c.add(sectionWords, words.Bytes())
	return nil
}

type building struct {
	Options
	ctx context.Context
}

// documents are the texts for the search by words: the name is also part of the title, and is found as a name.
func documents(items []*graph.Item) []lexical.Document {
	docs := make([]lexical.Document, len(items))
	for i, it := range items {
		docs[i] = lexical.Document{Title: it.Name + " " + it.Title, Body: it.Body, Names: namesOf(&it.Node)}
	}
	return docs
}

// topics returns the terms of each domain, of the items that words were built from.
func topics(words *lexical.Index, items []*graph.Item) (map[graph.Domain][]uint64, error) {
	domains := make([]graph.Domain, len(items))
	for i, it := range items {
		domains[i] = it.Type.Domain()
	}
	keys := map[graph.Domain][]uint64{}
	err := words.EachTerm(func(term []byte, docs func(func(uint32))) {
		key, seen := filter.Key(string(term)), uint8(0)
		docs(func(doc uint32) { seen |= 1 << domains[doc] })
		for _, d := range graph.Domains {
			if seen&(1<<d) != 0 {
				keys[d] = append(keys[d], key)
			}
		}
	})
	return keys, err
}

// vectors embeds all texts. If the embedder is not available, it adds none and warns.
func (b *building) vectors(items []*graph.Item, c *parts, meta *Meta) error {
	if b.WordsOnly {
		return nil
	}
	items, ids, places := byHash(items)
	texts := b.distinct(items)
	made := b.rows(len(texts.items))
	model, trained, err := b.embedAll(texts, made)
	if errors.Is(err, embed.ErrUnavailable) {
		b.Warn(fmt.Errorf("search goes by words only, until vectors can be had: %w", err))
		return nil
	}
	if err != nil {
		return err
	}
	b.Forget()
	x, err := knn.Assemble(b.ctx, b.linking(), ids,
		func(row int, into []float32) error { return made.get(texts.of[row], into) },
		func(done, total int) { b.Progress("vectors", done, total) })
	if err != nil {
		return err
	}
	meta.Model, meta.Dims = model, b.Dims
	c.add(sectionEmbedder, trained)
	c.add(sectionPlaces, sections.Raw(bySlot(places, x.Rows())))
	c[sectionVectors] = x.Content()
	return nil
}

// byHash are the items that are found by meaning, in the order of the hashes of their ids, and where they are among the
// nodes. Of two ids with one hash, which is all but impossible, the second is found by its words only.
func byHash(items []*graph.Item) (sorted []*graph.Item, ids []uint64, places []uint32) {
	type row struct {
		id    uint64
		place int
		*graph.Item
	}
	rows := make([]row, 0, len(items))
	for place, it := range items {
		if hasText(it) {
			rows = append(rows, row{graph.HashID(it.ID), place, it})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.id == b.id })
	for _, r := range rows {
		sorted, ids = append(sorted, r.Item), append(ids, r.id)
		places = append(places, uint32(r.place))
	}
	return sorted, ids, places
}

// bySlot returns the place of each slot; rows has the number of its vector.
func bySlot(places, rows []uint32) []uint32 {
	out := make([]uint32, len(rows))
	for slot, row := range rows {
		out[slot] = places[row]
	}
	return out
}

// forgetAfter is how many texts are read until they may be forgotten: some tens of megabytes.
const forgetAfter = 64 * batch

// batch is how many texts are embedded at a time.
const batch = 256

// embed makes the vectors of items, and passes them in batches to take, each with the number of its first: on
// several goroutines, in any order.
func (b *building) embed(e embed.Embedder, items []*graph.Item, take func(from int, vectors [][]float32) error) error {
	return b.inBatches("embed", len(items), func(ctx context.Context, _, from, to int) error {
		vectors, err := b.embedBatch(ctx, e, items[from:to])
		if err != nil {
			return err
		}
		return take(from, vectors)
	})
}

// inBatches calls do for each batch of n texts, on Threads goroutines; each has a number. The error is the first one,
// or that of the context, which is then done.
func (b *building) inBatches(step string, n int, do func(ctx context.Context, thread, from, to int) error) error {
	batches := make(chan int)
	ctx, stop := context.WithCancelCause(b.ctx)
	defer stop(nil)
	var mu sync.Mutex // of done and Progress
	done := 0
	var workers sync.WaitGroup
	for thread := range b.Threads {
		workers.Go(func() {
			for from := range batches {
				to := min(from+batch, n)
				if err := do(ctx, thread, from, to); err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				done += to - from
				b.Progress(step, done, n)
				if done%forgetAfter < batch {
					b.Forget()
				}
				mu.Unlock()
			}
		})
	}
	for from := 0; from < n && ctx.Err() == nil; from += batch {
		batches <- from
	}
	close(batches)
	workers.Wait()
	return context.Cause(ctx)
}

// embedBatch makes the vectors of items: of a long one the mean of those of its pieces.
func (b *building) embedBatch(ctx context.Context, e embed.Embedder, items []*graph.Item) ([][]float32, error) {
	m := &embedding{building: b, Embedder: e, vectors: make([][]float32, len(items)), several: make([]bool, len(items))}
	for i, it := range items {
		for _, text := range pieces(it) {
			if m.texts, m.of = append(m.texts, text), append(m.of, i); len(m.texts) < batch {
				continue
			}
			if err := m.flush(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := m.flush(ctx); err != nil {
		return nil, err
	}
	for i, v := range m.vectors {
		if m.several[i] {
			scaleMean(v)
		}
	}
	return m.vectors, nil
}

func (b *building) rows(n int) *rows {
	r := &rows{dims: b.Dims, scratch: b.Scratch}
	if r.scratch == nil {
		r.memory = make([][]float32, n)
	}
	r.end.Store(r.at(n))
	r.rooms.New = func() any {
		room := make([]byte, 4*r.dims)
		return &room
	}
	return r
}

// Open opens the built snapshot as an index of its bytes, in memory and without a file. The options must be those of
// the build.
func (s *Snapshot) Open(o Options) (*Index, error) {
	data, at := sections.Room(int(s.content.Length)), 0
	if err := s.Write(func(b []byte) error { at += copy(data[at:], b); return nil }); err != nil {
		return nil, err
	}
	o.Sound = true
	return Open(data, nil, o)
}

// embedAll puts the vectors of texts into rows. It returns the name of the model, and what the built-in one has learned,
// if it is that.
func (b *building) embedAll(t *texts, made *rows) (model string, trained []byte, err error) {
	if b.Embedder != nil {
		return b.Embedder.Model(), nil, b.embed(b.Embedder, t.items, made.put)
	}
	features := make([][]chunk, (len(t.items)+batch-1)/batch)
	e, err := b.learn(t, made, features)
	if err != nil {
		return "", nil, err
	}
	err = b.inBatches("embed", len(t.items), func(_ context.Context, _, from, to int) error {
		r := &featureReader{Builtin: e, rows: made, chunks: features[from/batch]}
		vectors, err := r.vectors(t.items[from:to])
		if err != nil {
			return err
		}
		return made.put(from, vectors)
	})
	return e.Model(), e.AppendTo(nil), err
}

// learn trains the built-in embedder on texts, and stores the features of each batch.
func (b *building) learn(t *texts, made *rows, features [][]chunk) (*embed.Builtin, error) {
	learners, rooms := make([]*embed.Learner, b.Threads), make([][]byte, b.Threads)
	for i := range learners {
		learners[i] = embed.NewLearner()
	}
	err := b.inBatches("learn words", len(t.items), func(ctx context.Context, thread, from, to int) (err error) {
		w := &featureWriter{rows: made, data: rooms[thread][:0]}
		for i := from; i < to && err == nil; i++ {
			for _, text := range pieces(t.items[i]) {
				w.data = learners[thread].Add(w.data, text, t.times[i])
				if err = errors.Join(w.flush(chunkSize), context.Cause(ctx)); err != nil {
					break
				}
			}
		}
		err = errors.Join(err, w.flush(1))
		rooms[thread], features[from/batch] = w.data, w.chunks
		return err
	})
	if err != nil {
		return nil, err
	}
	return embed.Learned(b.Dims, learners...), nil
}

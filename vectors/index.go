package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Index answers questions about all that was indexed. It never changes, and is safe for concurrent use; Update makes the
// next one.
type Index struct {
	Options
	meta      Meta
	base      *container
	data      []byte // of the snapshot
	baseGraph *graph.Graph
	baseWords *lexical.Index
	near      *knn.Index // nil if there are no vectors
	topics    *filter.Set
	embedder  embed.Embedder // nil: none that belongs to the vectors

	delta  *delta // nil if there is none
	graph  *graph.Graph
	words  *lexical.Set
	docs   []graph.Ref // of the texts that are not the snapshot's, by their number behind those
	live   *knn.Bitmap // slots of near that may be found; nil: all
	nearer *knn.Index  // vectors that are not the snapshot's; nil if there are none
}

// Open takes the bytes of a snapshot, which are used as they are and must not change, and of the delta beside it, nil if
// there is none. A delta of another snapshot is passed over. The error is ErrDamaged, or says that the vectors are of
// another embedder than the one that is wanted: then it is to be built anew.
func Open(snapshot, changes []byte, o Options) (*Index, error) {
	x := &Index{Options: o.withDefaults(), data: snapshot}
	if err := x.openBase(); err != nil {
		return nil, err
	}
	if err := x.openDelta(changes); err != nil {
		return nil, err
	}
	return x, x.ready()
}

func (x *Index) openBase() (err error) {
	if x.base, err = openContainer(x.data); err != nil {
		return err
	}
	if x.meta, err = x.base.meta(); err != nil {
		return err
	}
	if x.baseGraph, err = graph.Open(x.base.get(sectionGraph)); err != nil {
		return damaged(err)
	}
	if x.baseWords, err = lexical.Open(x.base.get(sectionWords)); err != nil {
		return damaged(err)
	}
	if x.baseWords.Docs() != x.baseGraph.Nodes() {
		return ErrDamaged
	}
	if x.topics, err = filter.Open(x.base.get(sectionTopics)); err != nil {
		return damaged(err)
	}
	return x.openVectors()
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// ErrOtherModel says that vectors are of another embedder than the one that is wanted now: vectors of two are never
// mixed.
var ErrOtherModel = errors.New("the index was made with another embedder")

func (x *Index) openVectors() (err error) {
	if x.meta.Model == "" {
		return nil
	}
	x.embedder = x.Embedder
	if x.embedder == nil {
		trained, err := embed.Open(x.base.get(sectionEmbedder))
		if err != nil {
			return damaged(err)
		}
		x.embedder = trained
	}
	if x.embedder.Model() != x.meta.Model || x.meta.Dims != x.Dims {
		return fmt.Errorf("%w: %s, and now it is %s", ErrOtherModel, x.meta.Model, x.embedder.Model())
	}
	if x.near, err = knn.Open(x.base.get(sectionVectors)); err != nil {
		return damaged(err)
	}
	if x.near.Dims() != x.meta.Dims {
		return ErrDamaged
	}
	return nil
}

func (x *Index) openDelta(data []byte) error {
	if data == nil {
		return nil
	}
	c, err := openContainer(data)
	if err != nil {
		return err
	}
	m, err := c.meta()
	if err != nil || m.Base != x.base.sum {
		return err
	}
	x.delta, err = decodeDelta(c.get(sectionDelta))
	return err
}

// ready makes what is searched, of the snapshot and the delta.
func (x *Index) ready() error {
	x.graph = x.baseGraph
	base := lexical.Segment{Index: x.baseWords}
	if x.delta == nil || len(x.delta.inputs) == 0 {
		set, err := lexical.NewSet(base)
		x.words = set
		return err
	}
	if err := x.merge(); err != nil {
		return err
	}
	fresh := x.fresh()
	x.docs = nil
	for _, it := range fresh {
		r, _ := x.graph.Find(it.ID)
		x.docs = append(x.docs, r)
	}
	base.Deleted = x.passedOver(fresh)
	words, err := lexical.Build(documents(fresh))
	if err != nil {
		return err
	}
	if x.words, err = lexical.NewSet(base, lexical.Segment{Index: words}); err != nil {
		return damaged(err)
	}
	x.topics = x.topics.With(topicsOf(fresh))
	return x.nearChanges(base.Deleted)
}

// fresh are the items of the delta with texts that are not the snapshot's, sorted by id.
func (x *Index) fresh() []*graph.Item {
	return slices.DeleteFunc(x.delta.items(), func(it *graph.Item) bool {
		r, ok := x.baseGraph.Find(it.ID)
		return ok && x.baseGraph.Node(r).Digest == it.Digest
	})
}

// passedOver are the texts of the snapshot that went or were replaced.
func (x *Index) passedOver(fresh []*graph.Item) (b lexical.Bitmap) {
	for r := range x.baseGraph.All() {
		if !x.graph.Has(r) {
			b.Add(int(r))
		}
	}
	for _, it := range fresh {
		if r, ok := x.baseGraph.Find(it.ID); ok {
			b.Add(int(r))
		}
	}
	return b
}

func (x *Index) nearChanges(gone lexical.Bitmap) error {
	if x.near == nil {
		return nil
	}
	x.live = &knn.Bitmap{}
	for slot := range x.near.Slots() {
		id, ok := x.near.ID(uint32(slot))
		if !ok {
			continue
		}
		if r, known := x.baseGraph.FindHash(id); known && !gone.Has(int(r)) {
			x.live.Add(uint32(slot))
		}
	}
	if len(x.delta.vectors) == 0 {
		return nil
	}
	var items []knn.Item
	for id, v := range x.delta.vectors {
		if _, ok := x.graph.Find(id); ok {
			items = append(items, knn.Item{ID: graph.HashID(id), Vector: v})
		}
	}
	slices.SortFunc(items, func(a, b knn.Item) int { return cmp.Compare(a.ID, b.ID) })
	var err error
	x.nearer, err = knn.Build(knn.Options{Dims: x.meta.Dims, Threads: x.Threads}, items, nil)
	return err
}

func topicsOf(items []*graph.Item) map[graph.Domain][]uint64 {
	keys := map[graph.Domain][]uint64{}
	for _, it := range items {
		d := it.Type.Domain()
		for _, t := range lexical.Terms(it.Name + " " + it.Title + "\n" + it.Body) {
			keys[d] = append(keys[d], filter.Key(t))
		}
	}
	return keys
}

// baseAlias is the id of the symbol that the snapshot knows under an alias; "" if there is none.
func (x *Index) baseAlias(alias string) string {
	table, hash := x.base.get(sectionAliases), graph.HashID(alias)
	n := len(table) / 12
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(table[12*i:]) }
	i := sort.Search(n, func(i int) bool { return at(i) >= hash })
	if i == n || at(i) != hash {
		return ""
	}
	r := graph.Ref(binary.LittleEndian.Uint32(table[12*i+8:]))
	if int(r) >= x.baseGraph.Nodes() {
		return ""
	}
	return x.baseGraph.ID(r)
}

func (x *Index) snapshotInputs() (map[string]known, error) {
	return decodeInputs(x.base.get(sectionInputs), x.baseGraph.Nodes())
}

// Known are the digests of all inputs by name, as they were taken in.
func (x *Index) Known() (map[string]uint64, error) {
	inputs, err := x.snapshotInputs()
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64, len(inputs))
	for name, k := range inputs {
		out[name] = k.digest
	}
	if x.delta != nil {
		for name, c := range x.delta.inputs {
			if c.gone {
				delete(out, name)
			} else {
				out[name] = c.digest
			}
		}
	}
	return out, nil
}

// Inputs is the digest of all inputs, see [DigestInputs]; 0 if the snapshot is damaged.
func (x *Index) Inputs() uint64 {
	known, err := x.Known()
	if err != nil {
		return 0
	}
	inputs := make([]Input, 0, len(known))
	for name, digest := range known {
		inputs = append(inputs, Input{Name: name, Digest: digest})
	}
	return DigestInputs(inputs)
}

// Update is the index after some inputs came or changed and others, by name, went. Texts are embedded if the snapshot
// has no vector of them; when the embedder cannot be had they are found by their words, and that is a warning.
func (x *Index) Update(ctx context.Context, inputs []Input, gone []string) (*Index, error) {
	next := &Index{
		Options: x.Options, meta: x.meta, base: x.base, data: x.data, baseGraph: x.baseGraph, baseWords: x.baseWords,
		near: x.near, embedder: x.embedder, delta: x.delta.clone(),
	}
	var err error
	if next.topics, err = filter.Open(x.base.get(sectionTopics)); err != nil {
		return nil, damaged(err)
	}
	for _, name := range gone {
		next.delta.inputs[name] = &changed{gone: true}
	}
	for _, in := range inputs {
		next.delta.inputs[in.Name] = &changed{digest: in.Digest, Part: next.trim(in.Part)}
	}
	if err := next.embedChanges(ctx, x); err != nil {
		return nil, err
	}
	return next, next.ready()
}

// trim drops texts that the snapshot has.
func (x *Index) trim(p graph.Part) graph.Part {
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		it := &p.Items[i]
		if r, ok := x.baseGraph.Find(it.ID); ok && x.baseGraph.Node(r).Digest == it.Digest {
			it.Title, it.Body = "", ""
		}
	}
	return p
}

// embedChanges makes the vectors of fresh texts, but for those that the index before had.
func (x *Index) embedChanges(ctx context.Context, was *Index) error {
	if x.near == nil {
		return nil
	}
	vectors := map[string][]float32{}
	var missing []*graph.Item
	digests := was.freshDigests()
	for _, it := range x.fresh() {
		if v := was.vector(it.ID); v != nil && digests[it.ID] == it.Digest {
			vectors[it.ID] = v
		} else if told(it) {
			missing = append(missing, it)
		}
	}
	b := &building{Options: x.Options, ctx: ctx}
	byHash := map[uint64]string{}
	for _, it := range missing {
		byHash[graph.HashID(it.ID)] = it.ID
	}
	b.Dims = x.meta.Dims
	made, err := b.embed(x.embedder, missing)
	if errors.Is(err, embed.ErrUnavailable) {
		x.Warn(fmt.Errorf("what changed is found by its words only: %w", err))
	} else if err != nil {
		return err
	}
	for _, it := range made {
		vectors[byHash[it.ID]] = it.Vector
	}
	x.delta.vectors = vectors
	return nil
}

// vector is the vector of a text of the delta.
func (x *Index) vector(id string) []float32 {
	if x.delta == nil {
		return nil
	}
	return x.delta.vectors[id]
}

func (x *Index) freshDigests() map[string]uint64 {
	out := map[string]uint64{}
	if x.delta != nil {
		for _, it := range x.fresh() {
			out[it.ID] = it.Digest
		}
	}
	return out
}

// Changed is how many texts and nodes are not as in the snapshot: when they are many, it is to be compacted.
func (x *Index) Changed() int { return max(len(x.docs), x.graph.Changed()) }

// Graph is the graph of everything.
func (x *Index) Graph() *graph.Graph { return x.graph }

// Meta is what the snapshot says of itself.
func (x *Index) Meta() Meta { return x.meta }

// Sum is what the snapshot is known by.
func (x *Index) Sum() uint64 { return x.base.sum }

// Digest is the xxhash64 of the whole snapshot.
func (x *Index) Digest() uint64 { return xxhash.Sum64(x.data) }

// Verify checks all of the snapshot, also what is otherwise checked as it is used.
func (x *Index) Verify() error {
	if err := x.base.verify(x.data); err != nil {
		return err
	}
	if err := errors.Join(x.baseGraph.Verify(), x.baseWords.Verify()); err != nil {
		return damaged(err)
	}
	if x.near != nil {
		if err := x.near.Verify(); err != nil {
			return damaged(err)
		}
	}
	return nil
}

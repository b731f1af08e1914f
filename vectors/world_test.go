package vectors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

// bag is an embedder that needs no training: each word turns the vector a little. It can be switched off.
type bag struct {
	dims  int
	model string
	off   error
}

func (b *bag) Model() string { return b.model }

func (b *bag) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if b.off != nil {
		return nil, b.off
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := embed.Nothing(b.dims)
		for word := range strings.FieldsSeq(text) {
			h := xxhash.Sum64String(word)
			for d := range v {
				v[d] += float32(int8(h>>(d%8*8))) / float32(d+1)
			}
		}
		if err := embed.Unit(v); err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, ctx.Err()
}

// world is a set of inputs that changes by chance: files of symbols that call each other by name of their folder,
// documents that link, packages of others that several import, and facts.
type world struct {
	*rand.Rand
	files map[string]file
	turn  int
}

type file struct {
	symbols []string
	calls   []string // ids and aliases
	imports []string
	words   string
}

const folders, perFolder, symbolsOfFolder = 3, 4, 6

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), files: map[string]file{}}
	for range 12 {
		w.change()
	}
	return w
}

func (w *world) folder() string { return fmt.Sprintf("f%d/", w.IntN(folders)) }
func (w *world) symbol() string { return fmt.Sprintf("S%d", w.IntN(symbolsOfFolder)) }

func (w *world) change() (name string, gone bool) {
	w.turn++
	p := fmt.Sprintf("%sn%d.go", w.folder(), w.IntN(perFolder))
	if w.IntN(4) == 0 {
		delete(w.files, p)
		return "file:" + p, true
	}
	f := file{words: fmt.Sprintf("word%d of turn", w.IntN(20))}
	for range w.IntN(4) {
		if s := w.symbol(); !slices.Contains(f.symbols, s) {
			f.symbols = append(f.symbols, s)
		}
	}
	for range w.IntN(5) {
		f.calls = append(f.calls, w.folder()+":"+w.symbol(), p[:3]+fmt.Sprintf("n%d.go:%s", w.IntN(perFolder), w.symbol()))
	}
	for range w.IntN(3) {
		f.imports = append(f.imports, fmt.Sprintf("import:lib%d", w.IntN(4)))
	}
	w.files[p] = f
	return "file:" + p, false
}

// input is what a file comes to. Every third states facts of others.
func (w *world) input(p string) vectors.Input {
	f, b := w.files[p], &graph.PartBuilder{}
	id := b.Add(graph.Item{
		Node:  graph.Node{ID: p, Type: graph.File, Name: p, Path: p, Labels: []string{"lang=go"}},
		Title: p, Body: f.words,
	})
	for _, s := range f.symbols {
		to := b.Add(graph.Item{
			Node:  graph.Node{ID: p + ":" + s, Type: graph.Function, Name: s, Path: p, Line: len(f.words), Labels: []string{"lang=go"}},
			Title: s, Body: f.words + " " + s,
		})
		b.Edge(id, graph.Defines, to)
		for _, c := range f.calls {
			b.Edge(to, graph.Calls, c)
		}
	}
	for _, im := range f.imports {
		if !b.Has(im) {
			b.Add(graph.Item{Node: graph.Node{ID: im, Type: graph.Import, Name: im[7:]}, Title: im[7:]})
		}
		b.Edge(id, graph.Imports, im)
	}
	in := vectors.Input{Name: "file:" + p, Part: b.Part}
	if strings.Contains(p, "n0") {
		for _, c := range f.calls {
			in.Edges = append(in.Edges, graph.Edge{From: "f1/n1.go", To: c, Type: graph.Contains, Weight: 0.5, Source: "by hand"})
			in.Provenances = append(in.Provenances, graph.Provenance{ID: c, Node: c, SourceType: "review", Confidence: 500})
			in.Conflicts = append(in.Conflicts, graph.Conflict{ID: c, A: c, B: "f1/n1.go", Type: "duplicate"})
		}
	}
	in.Digest = xxhash.Sum64String(fmt.Sprintf("%+v", f))
	return in
}

func (w *world) inputs() []vectors.Input {
	var out []vectors.Input
	for p := range w.files {
		out = append(out, w.input(p))
	}
	return out
}

func options() vectors.Options {
	return vectors.Options{Embedder: &bag{dims: 16, model: "bag"}, Dims: 16, Threads: 2}
}

// joined is a file of some parts.
func joined(parts [][]byte) []byte { return slices.Concat(parts...) }

func build(t *testing.T, inputs []vectors.Input, o vectors.Options) []byte {
	t.Helper()
	made, err := vectors.Build(t.Context(), inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	if err := made.Write(func(b []byte) error { out = append(out, b...); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t *testing.T, snapshot, delta []byte, o vectors.Options) *vectors.Index {
	t.Helper()
	x, err := vectors.Open(snapshot, delta, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// edges are those that leave a node.
func edges(g *graph.Graph, r graph.Ref) []graph.Edge {
	var out []graph.Edge
	to, _ := g.Walk([]graph.Ref{r}, graph.Reach{Filter: graph.Filter{Direction: graph.Out}, Depth: 1})
	for _, v := range to { // the first is the node itself
		out = append(out, g.Between(r, v.Node)...)
	}
	return out
}

// answers is all that an index says that has to be the same however it came about.
func answers(t *testing.T, x *vectors.Index) string {
	t.Helper()
	var b strings.Builder
	g := x.Graph()
	for r := range g.All() {
		fmt.Fprintf(&b, "node %+v\nedges %+v\n%+v\n%+v\n", g.Node(r), edges(g, r), g.Provenance(r), g.Conflicts(r))
	}
	fmt.Fprintf(&b, "inputs %x\n", x.Stored.Inputs())
	for _, q := range []vectors.Query{
		{Text: "word1 word3 S1"}, {Text: "word7", Mode: vectors.Lexical}, {Text: "S2 word3", Mode: vectors.Vector, Exact: true},
		{Text: "S3", Types: []graph.NodeType{graph.Function}}, {Text: "lib1", Types: []graph.NodeType{graph.Import}},
	} {
		a, err := x.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Results {
			fmt.Fprintf(&b, "%s: %s %.4f %v %v %v\n", q.Text, f.ID, f.Score, f.ByWords.Rank, f.ByVector.Rank, f.ByGraph.Rank)
		}
	}
	for _, word := range []string{"f0", "f0/:S1", "f1/:S2", "f2/n1.go:S3"} {
		if r, ok := x.Resolve(word); ok {
			fmt.Fprintf(&b, "%s is %q\n", word, x.Graph().ID(r))
		}
	}
	return b.String()
}

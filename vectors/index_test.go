package vectors_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

func TestBuildIsAFunctionOfItsInputs(t *testing.T) {
	t.Parallel()
	for _, embedder := range []embed.Embedder{nil, &bag{dims: 16, model: "bag"}} {
		w := newWorld(7)
		o := options()
		o.Embedder = embedder
		want := build(t, w.inputs(), o)
		for n := range 5 {
			inputs := w.inputs() // in the order of a map
			rand.New(rand.NewPCG(uint64(n), 2)).Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
			o.Threads = 1 + n
			if !bytes.Equal(want, build(t, inputs, o)) {
				t.Errorf("other bytes from another order of the inputs, with %d threads", o.Threads)
			}
		}
		x := open(t, want, nil, o)
		if err := x.Verify(); err != nil {
			t.Error(err)
		}
		if r, err := x.Recall(20); err != nil || r.Default != 1 || r.Thorough != 1 || r.Asked == 0 {
			t.Errorf("recall is %+v, %v", r, err)
		}
	}
}

// What was taken in is the same when the two files are read again, and is gone from the delta when it is undone.
func TestDeltaIsReadBack(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	before := w.inputs()
	snapshot := build(t, before, options())
	x := open(t, snapshot, nil, options())
	if x.Delta() != nil {
		t.Error("an index without changes has a delta")
	}
	f := w.files["f0/n1.go"]
	w.files["f0/n1.go"] = file{symbols: []string{"S9"}, words: "quite new"}
	next, err := x.Stored.Update(t.Context(), []vectors.Input{w.input("f0/n1.go")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := open(t, snapshot, joined(next.Delta()), options())
	if got, want := answers(t, read), answers(t, next); got != want {
		t.Errorf("read back:\n%s", difference(got, want))
	}
	if again, err := read.Stored.Update(t.Context(), []vectors.Input{w.input("f0/n1.go")}, nil); err != nil ||
		!bytes.Equal(joined(again.Delta()), joined(next.Delta())) {
		t.Errorf("the same change a second time makes another delta (%v)", err)
	}
	var gone []string
	if f.words == "" {
		delete(w.files, "f0/n1.go")
		gone = []string{"file:f0/n1.go"}
	} else {
		w.files["f0/n1.go"] = f
	}
	back, err := read.Stored.Update(t.Context(), before, gone)
	if err != nil || back.Delta() != nil {
		t.Errorf("what was undone is still in the delta (%v)", err)
	}
	other := open(t, build(t, newWorld(4).inputs(), options()), joined(next.Delta()), options())
	if other.Delta() != nil {
		t.Error("the delta of another snapshot was taken")
	}
}

// Every byte counts: one that is flipped, or a file that is cut, is noticed by Open or by Verify.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(5)
	snapshot := build(t, w.inputs(), options())
	x := open(t, snapshot, nil, options())
	w.files["f1/n1.go"] = file{symbols: []string{"S1"}, words: "new"}
	next, err := x.Stored.Update(t.Context(), []vectors.Input{w.input("f1/n1.go")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	delta := joined(next.Delta())
	notice := func(what string, snapshot, delta []byte) {
		t.Helper()
		x, err := vectors.Open(snapshot, delta, options())
		if err == nil {
			err = x.Verify()
		}
		if !errors.Is(err, vectors.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for at := 0; at < len(snapshot); at += 61 {
		flipped := bytes.Clone(snapshot)
		flipped[at] ^= 0x20
		notice(fmt.Sprintf("snapshot flipped at %d", at), flipped, nil)
	}
	for at := 0; at < len(snapshot); at += 4099 {
		notice(fmt.Sprintf("snapshot cut at %d", at), snapshot[:at], nil)
	}
	for at := 0; at < len(delta); at += 7 {
		flipped := bytes.Clone(delta)
		flipped[at] ^= 0x20
		notice(fmt.Sprintf("delta flipped at %d", at), snapshot, flipped)
	}
	notice("empty", []byte{}, nil)
	notice("longer", append(bytes.Clone(snapshot), 0), nil)
}

// Vectors can be used before they are compared with their sum: they may be wrong then, and Confirm tells.
func TestVectorsAreConfirmed(t *testing.T) {
	t.Parallel()
	o := options() // with vectors that take several pages
	o.Embedder, o.Dims = &bag{dims: 2048, model: "bag"}, 2048
	snapshot := build(t, newWorld(5).inputs(), o)
	found := 0
	for at := 4096; at < len(snapshot); at += 1009 {
		flipped := bytes.Clone(snapshot)
		flipped[at] ^= 0x20
		s, err := vectors.Load(flipped, nil, o)
		if err != nil {
			continue
		}
		x, err := s.Ready()
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Search(t.Context(), vectors.Query{Text: "word1 word3", Mode: vectors.Vector})
		switch damage := s.Confirm(); {
		case errors.Is(damage, vectors.ErrDamaged):
			found++
		case err != nil:
			t.Errorf("flipped at %d: %v, and is confirmed", at, err)
		}
	}
	if found == 0 {
		t.Error("no damage was left to Confirm")
	}
	if err := open(t, snapshot, nil, o).Stored.Confirm(); err != nil {
		t.Error(err)
	}
}

func TestOtherModel(t *testing.T) {
	t.Parallel()
	snapshot := build(t, newWorld(1).inputs(), options())
	for _, o := range []vectors.Options{
		{Embedder: &bag{dims: 16, model: "another"}, Dims: 16}, {Embedder: &bag{dims: 8, model: "bag"}, Dims: 8}, {Dims: 16},
	} {
		if _, err := vectors.Open(snapshot, nil, o); !errors.Is(err, vectors.ErrOtherModel) && !errors.Is(err, vectors.ErrDamaged) {
			t.Errorf("opened for %+v: %v", o, err)
		}
	}
}

// Links are those of the settings, in the snapshot and in the delta; what a search keeps is no matter of what is stored.
func TestOtherLinks(t *testing.T) {
	t.Parallel()
	o := options()
	o.M, o.EfConstruction = 5, 40
	snapshot := build(t, newWorld(1).inputs(), o)
	o.EfSearch, o.EfThorough = 3, 2
	open(t, snapshot, nil, o)
	for _, other := range []func(*vectors.Options){
		func(o *vectors.Options) { o.M = 6 },
		func(o *vectors.Options) { o.EfConstruction = 0 },
	} {
		now := o
		other(&now)
		_, err := vectors.Open(snapshot, nil, now)
		if !errors.Is(err, vectors.ErrOtherLinks) || !strings.Contains(err.Error(), "m 5 and efConstruction 40") {
			t.Errorf("opened for m %d and efConstruction %d: %v", now.M, now.EfConstruction, err)
		}
	}
}

// Without an embedder search goes by words, and says so.
func TestEmbedderFails(t *testing.T) {
	t.Parallel()
	e := &bag{dims: 16, model: "bag"}
	o := options()
	o.Embedder = e
	x := open(t, build(t, things(), o), nil, o)
	e.off = fmt.Errorf("%w: out for lunch", embed.ErrUnavailable)
	a, err := x.Search(t.Context(), vectors.Query{Text: "retry"})
	if err != nil || len(a.Results) == 0 || len(a.Warnings) != 1 || !errors.Is(a.Warnings[0], embed.ErrUnavailable) {
		t.Errorf("results %d, warnings %v, error %v", len(a.Results), a.Warnings, err)
	}
	var warned []error
	o.Warn = func(err error) { warned = append(warned, err) }
	x = open(t, build(t, things(), o), nil, o)
	if len(warned) != 1 || x.Stored.Meta().Model != "" {
		t.Errorf("built without an embedder: %v, model %q", warned, x.Stored.Meta().Model)
	}
	a, err = x.Search(t.Context(), vectors.Query{Text: "retry"})
	if err != nil || len(a.Results) == 0 || !errors.Is(a.Warnings[0], vectors.ErrNoVectors) {
		t.Errorf("results %d, warnings %v, error %v", len(a.Results), a.Warnings, err)
	}
	e.off = errors.New("not what was agreed")
	if _, err := vectors.Build(t.Context(), things(), o); !errors.Is(err, e.off) {
		t.Errorf("built with an embedder that is broken: %v", err)
	}
	e.off, e.dims = nil, 12
	if _, err := vectors.Build(t.Context(), things(), o); err == nil || !strings.Contains(err.Error(), "12 numbers") {
		t.Errorf("built with vectors of another length: %v", err)
	}
}

// things are inputs of all domains.
func things() []vectors.Input {
	var out []vectors.Input
	add := func(name string, item graph.Item, edges ...graph.Edge) {
		b := &graph.PartBuilder{}
		b.Add(item)
		b.Edges = edges
		out = append(out, vectors.Input{Name: name, Digest: uint64(len(out)) + 1, Part: b.Part})
	}
	for i := range 300 {
		id := fmt.Sprintf("src/f%d.go", i)
		add("file:"+id, graph.Item{
			Node:  graph.Node{ID: id, Type: graph.File, Name: id, Path: id, Labels: []string{fmt.Sprintf("bucket=%d", i%60), "lang=go"}},
			Title: "retry the upload", Body: strings.Repeat("backoff ", i%7),
		})
	}
	add("object:session/login", graph.Item{
		Node:  graph.Node{ID: "session/login", Type: graph.Session, Name: "login", Labels: []string{"issue=7", "kind=session"}},
		Title: "Log people in", Body: "passwords and a retry",
	}, graph.Edge{From: "session/login", To: "src/f5.go", Type: graph.Modified})
	add("file:docs/login.md", graph.Item{
		Node: graph.Node{ID: "docs/login.md", Type: graph.Doc, Name: "login.md", Path: "docs/login.md"}, Title: "Login", Body: "tokens",
	}, graph.Edge{From: "docs/login.md", To: "src/f7.go", Type: graph.Documents})
	return out
}

func TestSearchFilters(t *testing.T) {
	t.Parallel()
	x := open(t, build(t, things(), options()), nil, options())
	search := func(q vectors.Query) *vectors.Answer {
		t.Helper()
		a, err := x.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, mode := range vectors.Modes {
		a := search(vectors.Query{Text: "retry upload", Mode: mode, Labels: []string{"bucket=9"}, Limit: 5})
		if len(a.Results) != 5 {
			t.Errorf("%s: a filter that five pass finds %d", mode, len(a.Results))
		}
		for _, f := range a.Results {
			if !slices.Contains(f.Labels, "bucket=9") {
				t.Errorf("%s: %s passed the filter with %v", mode, f.ID, f.Labels)
			}
		}
	}
	a := search(vectors.Query{Text: "retry", Domains: []graph.Domain{graph.History}})
	if len(a.Results) != 1 || a.Results[0].ID != "session/login" || !slices.Equal(a.AlsoExistsIn, []graph.Domain{graph.Code}) {
		t.Errorf("in history: %+v, also in %v", a.Results, a.AlsoExistsIn)
	}
	a = search(vectors.Query{Text: "passwords", Domains: []graph.Domain{graph.Academic}, Mode: vectors.Lexical})
	if !a.NoMatches || len(a.Results) > 0 || !slices.Equal(a.AlsoExistsIn, []graph.Domain{graph.History}) {
		t.Errorf("nothing in documents: %+v", a)
	}
	if a = search(vectors.Query{Text: "xylophone", Mode: vectors.Lexical}); !a.NoMatches || len(a.Results) > 0 || len(a.AlsoExistsIn) > 0 {
		t.Errorf("a word that nothing has: %+v", a)
	}
	a = search(vectors.Query{Text: "retry", Types: []graph.NodeType{graph.Session, graph.Doc}})
	if len(a.Results) == 0 || a.Results[0].ID != "session/login" {
		t.Errorf("sessions and documents: %+v", a.Results)
	}
	if _, err := x.Search(t.Context(), vectors.Query{Text: "a", Mode: "guess"}); err == nil {
		t.Error("a mode that there is not was taken")
	}
}

// The edges that explain a result begin at one that was found by itself.
func TestViaLeadsFromAResult(t *testing.T) {
	t.Parallel()
	x := open(t, build(t, things(), options()), nil, options())
	a, err := x.Search(t.Context(), vectors.Query{Text: "tokens", MinSimilarity: 0.99})
	if err != nil {
		t.Fatal(err)
	}
	var found *vectors.Found
	for i := range a.Results {
		if a.Results[i].ID == "src/f7.go" {
			found = &a.Results[i]
		}
	}
	want := []graph.Edge{{From: "docs/login.md", To: "src/f7.go", Type: graph.Documents, Weight: 1}}
	if found == nil || found.ByGraph.Rank == 0 || !slices.Equal(found.Via, want) || a.Results[0].ID != "docs/login.md" {
		t.Errorf("found %+v", a.Results)
	}
}

// A word that nothing has ends a search at once, unless the vectors are of an embedder that may know what it means.
func TestUnknownWords(t *testing.T) {
	t.Parallel()
	for _, knowing := range []bool{true, false} {
		o := options()
		if !knowing {
			o.Embedder = nil
		}
		x := open(t, build(t, things(), o), nil, o)
		for _, mode := range []vectors.Mode{vectors.Hybrid, vectors.Vector, vectors.Lexical} {
			a, err := x.Search(t.Context(), vectors.Query{Text: "xylophone", Mode: mode})
			found := knowing && mode != vectors.Lexical
			if err != nil || a.NoMatches == found || len(a.Results) > 0 != found {
				t.Errorf("%s, by an embedder that knows it: %v: %d results, %v, %v", mode, knowing, len(a.Results), a.NoMatches, err)
			}
		}
	}
}

// What is first by words and first by vectors is first: others are not raised above it for being related to each other.
func TestTheBestOfBothIsFirst(t *testing.T) {
	t.Parallel()
	in := vectors.Input{Name: "go:p/", Digest: 1}
	b := &graph.PartBuilder{}
	for id, body := range map[string]string{"p/a.go:Best": "ordered balanced things", "p/b.go:X": "ordered words of others",
		"p/c.go:Y": "balanced sums of others"} {
		b.Add(graph.Item{Node: graph.Node{ID: id, Type: graph.Function, Name: id}, Title: "function", Body: body})
	}
	b.Edge("p/b.go:X", graph.Calls, "p/c.go:Y")
	in.Part = b.Part
	x := open(t, build(t, []vectors.Input{in}, options()), nil, options())
	a, err := x.Search(t.Context(), vectors.Query{Text: "ordered balanced things"})
	if err != nil || len(a.Results) != 3 {
		t.Fatalf("found %+v, %v", a, err)
	}
	if best := a.Results[0]; best.ID != "p/a.go:Best" || best.ByWords.Rank != 1 || best.ByVector.Rank != 1 {
		t.Errorf("the first is %+v", best)
	}
}

func TestReadersBesideUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(11)
	x := open(t, build(t, w.inputs(), options()), nil, options())
	var readers sync.WaitGroup
	for range 8 {
		name, gone := w.change()
		var next *vectors.Index
		var err error
		if gone {
			next, err = x.Stored.Update(t.Context(), nil, []string{name})
		} else {
			next, err = x.Stored.Update(t.Context(), []vectors.Input{w.input(strings.TrimPrefix(name, "file:"))}, nil)
		}
		now := x
		for range 4 {
			readers.Go(func() {
				if _, err := now.Search(t.Context(), vectors.Query{Text: "word1 S2", Labels: []string{"lang=go"}}); err != nil {
					t.Error(err)
				}
			})
		}
		if err == nil {
			x = next
		} else if !errors.Is(err, vectors.ErrRebuild) {
			t.Fatal(err)
		}
	}
	readers.Wait()
}

// Edges that somebody wrote down lead where they say, and are told of when there is nothing.
func TestFacts(t *testing.T) {
	t.Parallel()
	var warned []string
	o := options()
	o.Warn = func(err error) { warned = append(warned, err.Error()) }
	facts := vectors.Input{Name: "facts:state/graph/a.json", Digest: 1, Part: graph.Part{Edges: []graph.Edge{
		{From: "docs/login.md", To: "src/f1.go", Type: graph.Documents, Weight: 0.5, Source: "state/graph/a.json"},
		{From: "docs/login.md", To: "src/nowhere.go", Type: graph.Documents, Source: "state/graph/a.json"},
	}}, Provenances: []graph.Provenance{{ID: "p", Node: "src/f1.go", Confidence: 900}}}
	x := open(t, build(t, append(things(), facts), o), nil, o)
	if len(warned) != 1 || !strings.Contains(warned[0], "state/graph/a.json") || !strings.Contains(warned[0], "nowhere") {
		t.Errorf("warned of %q", warned)
	}
	doc, _ := x.Graph().Find("docs/login.md")
	r, _ := x.Graph().Find("src/f1.go")
	if in := x.Graph().Between(doc, r); len(in) != 1 || in[0].Source != "state/graph/a.json" || in[0].Weight != 0.5 {
		t.Errorf("edges %+v", in)
	}
	if p := x.Graph().Provenance(r); len(p) != 1 || p[0].Source != "state/graph/a.json" {
		t.Errorf("provenances %+v", p)
	}
	next, err := x.Stored.Update(t.Context(), nil, []string{facts.Name})
	if err != nil {
		t.Fatal(err)
	}
	if g := next.Graph(); len(g.Between(doc, r))+len(g.Provenance(r)) > 0 {
		t.Error("what a file stated stays when the file goes")
	}
}

package vectors

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// manyTexts are items of which some have the same text, one a long one, and more features than are put aside at a time.
func manyTexts() []graph.Item {
	corpus := lexicaltest.New(3)
	var items []graph.Item
	add := func(title, body string) {
		id := fmt.Sprint("n", len(items))
		items = append(items, graph.Item{Node: graph.Node{ID: id, Type: graph.Doc, Name: id}, Title: title, Body: body})
	}
	for i := range 2*batch + 9 {
		title, body := corpus.Text(5), corpus.Text(20+i%300)
		for range 1 + i%3 {
			add(title, body)
		}
	}
	add("the same", "one")
	add("the same\none", "")
	add("long", strings.Repeat(corpus.Text(3000), 20))
	add("nothing", "…")
	add("", "the body")
	return items
}

// sectionsOf are the bytes of a part of an index that is built of items.
func sectionsOf(t *testing.T, items []graph.Item, o Options, section int) []byte {
	t.Helper()
	b := &graph.PartBuilder{}
	for _, it := range items {
		b.Add(it)
	}
	made, err := Build(t.Context(), []Input{{Name: "file:all", Part: b.Part}}, o)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	if err := made.Write(func(p []byte) error { data = append(data, p...); return nil }); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(data, false)
	if err != nil {
		t.Fatal(err)
	}
	part := f.Get(section)
	if len(part) == 0 {
		t.Fatal("the index has no such part")
	}
	return part
}

// What the built-in embedder learns while texts are read, each text once, makes the vectors that it makes of all of the
// texts themselves.
func TestTextsAreReadOnce(t *testing.T) {
	t.Parallel()
	items := manyTexts()
	learner := embed.NewLearner()
	for i := range items {
		for _, text := range pieces(&items[i]) {
			learner.Add(nil, text, 1)
		}
	}
	trained := embed.Learned(48, learner)
	if !bytes.Equal(sectionsOf(t, items, Options{Dims: 48}, sectionEmbedder), trained.AppendTo(nil)) {
		t.Error("it has learned something else")
	}
	want := sectionsOf(t, items, Options{Dims: 48, Embedder: trained}, sectionVectors)
	for threads := mutants.Size(3, 1, 1); threads <= 3; threads++ {
		f, err := os.Create(filepath.Join(t.TempDir(), "scratch"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, o := range []Options{{}, {Scratch: f}} {
			o.Dims, o.Threads = 48, threads
			if !bytes.Equal(sectionsOf(t, items, o, sectionVectors), want) {
				t.Errorf("%d threads, a scratch: %v: other vectors", o.Threads, o.Scratch != nil)
			}
		}
	}
}

// Of many items each text is embedded once, also where the hashes of texts do not tell them apart.
func TestDistinct(t *testing.T) {
	t.Parallel()
	items := manyTexts()
	all := make([]*graph.Item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	b := &building{Options: Options{}.withDefaults()}
	texts := b.distinct(all)
	if n := 2*batch + 9 + 5; len(texts.items) != n {
		t.Errorf("%d different texts, want %d", len(texts.items), n)
	}
	times := make([]int, len(texts.items))
	for i, it := range all {
		n := texts.of[i]
		if first := texts.items[n]; first.Title != it.Title || first.Body != it.Body {
			t.Errorf("%s has the text of %s", it.ID, first.ID)
		}
		times[n]++
	}
	for n, want := range times {
		if texts.times[n] != want {
			t.Errorf("%s occurs %d times, want %d", texts.items[n].ID, texts.times[n], want)
		}
	}
}

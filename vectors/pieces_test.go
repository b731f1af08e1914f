package vectors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// long is an input with one document, of so many paragraphs that each have a word of their own.
func long(paragraphs int) vectors.Input {
	var text strings.Builder
	for i := range paragraphs {
		fmt.Fprintf(&text, "paragraph%d %s\n", i, strings.Repeat("filled with words ", 20))
	}
	b := &graph.PartBuilder{}
	b.Add(graph.Item{
		Node:  graph.Node{ID: "long.md", Type: graph.Doc, Name: "long.md", Path: "long.md", Line: 1},
		Title: "long.md", Body: text.String(),
	})
	return vectors.Input{Name: "file:long.md", Digest: uint64(paragraphs), Part: b.Part}
}

// Of a long text the words of its end are found as those of its begin, and its vector is made of all of it.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	b := &graph.PartBuilder{}
	b.Add(graph.Item{Node: graph.Node{ID: "short.md", Type: graph.Doc, Name: "short.md"}, Title: "short.md", Body: "a few"})
	short := vectors.Input{Name: "file:short.md", Part: b.Part}
	for _, o := range []vectors.Options{options(), {Dims: 64}} {
		x := open(t, build(t, []vectors.Input{long(300), short}, o), nil, o)
		for _, word := range []string{"paragraph0", "paragraph150", "paragraph299"} {
			for _, mode := range []vectors.Mode{vectors.Lexical, vectors.Vector} {
				a, err := x.Search(t.Context(), vectors.Query{Text: word, Mode: mode, Limit: 3})
				if err != nil {
					t.Fatal(err)
				}
				if len(a.Results) == 0 || mode == vectors.Lexical && a.Results[0].ID != "long.md" {
					t.Errorf("%s by %s: %v", word, mode, a.Results)
				}
			}
		}
		if err := x.Verify(); err != nil {
			t.Error(err)
		}
	}
}

// lengths keeps what it gets.
type lengths struct {
	bag
	texts []string
}

func (l *lengths) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	l.texts = append(l.texts, texts...)
	return l.bag.Embed(ctx, texts)
}

// A long text is cut behind spaces, and one that has none between characters.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	e := &lengths{bag: bag{dims: 2, model: "bag"}}
	b := &graph.PartBuilder{}
	b.Add(graph.Item{Node: graph.Node{ID: "a", Type: graph.Doc, Name: "a"}, Title: "a", Body: strings.Repeat("äöü", 9000)})
	b.Add(graph.Item{Node: graph.Node{ID: "b", Type: graph.Doc, Name: "b"}, Title: "b", Body: strings.Repeat("word ", 4000)})
	o := vectors.Options{Embedder: e, Dims: 2, Threads: 1}
	build(t, []vectors.Input{{Name: "file:a", Part: b.Part}}, o)
	if len(e.texts) != 7+3 {
		t.Errorf("%d pieces, want 7 and 3", len(e.texts))
	}
	for _, text := range e.texts {
		if title, body, _ := strings.Cut(text, "\n"); len(body) > 8<<10+4 || len(body) < 4<<10 || title != "a" && title != "b" ||
			strings.ToValidUTF8(body, "") != body {
			t.Errorf("a piece of %d bytes under %q", len(body), title)
		}
	}
}

package main

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

func TestCurveIsInterpolated(t *testing.T) {
	curve := []point{{0.90, 100, 200}, {0.94, 100, 300}, {0.96, 400, 1200}}
	for _, c := range []struct {
		recall float64
		mean   time.Duration
		ok     bool
	}{{0.90, 100, true}, {0.5, 100, true}, {0.95, 200, true}, {0.96, 400, true}, {0.97, 0, false}} {
		p, ok := at(curve, c.recall)
		if ok != c.ok || p.mean < c.mean-1 || p.mean > c.mean+1 {
			t.Errorf("recall %g takes %d, %v; want %d, %v", c.recall, p.mean, ok, c.mean, c.ok)
		}
	}
	if p, _ := at(curve, 0.95); p.p99 < 599 || p.p99 > 601 {
		t.Errorf("the 99th percentile is %d, want 600", p.p99)
	}
}

func TestRowsOfVectorIDs(t *testing.T) {
	x := &vectorIndex{}
	for _, row := range []int{0, 1, 99_999, 1 << 31} {
		if got := x.row(vectorID(row)); got != uint32(row) {
			t.Errorf("row %d becomes %d", row, got)
		}
	}
}

// Each edit makes another file, which still compiles; the edits of a body bring in a word that no other edit has.
func TestEditsCompile(t *testing.T) {
	t.Parallel()
	text := []byte("package p\n\ntype T int\n\nfunc (T) M() {}\n\nfunc F() int { return 1 }\n")
	before := [][]byte{text}
	for n := range 12 {
		for name, change := range map[string]edit{"body": editBody, "whole": editWhole} {
			changed, err := change(text, n)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(before, func(b []byte) bool { return bytes.Equal(b, changed) }) {
				t.Errorf("%s, edit %d makes a text that was there before:\n%s", name, n, changed)
			}
			before = append(before, changed)
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, "p.go", changed, 0)
			if err == nil {
				c := types.Config{Importer: importer.Default()}
				_, err = c.Check("p", files, []*ast.File{f}, nil)
			}
			if err != nil {
				t.Errorf("%s, edit %d: %v\n%s", name, n, err, changed)
			}
		}
		if terms := lexical.Terms(editedName(n)); len(terms) != 1 || slices.Contains(lexical.Terms(editedName(n+1)), terms[0]) {
			t.Errorf("edit %d brings in %v", n, terms)
		}
	}
	if _, err := editBody([]byte("package p\n"), 1); err == nil {
		t.Error("a file without functions is edited")
	}
}

// What whole searches are measured on has as many nodes as it should, all of its edges, and all domains.
func TestNodeInputs(t *testing.T) {
	t.Parallel()
	const n = 1500
	inputs := nodeInputs(lexicaltest.New(1), 1, n)
	o := vectors.Options{WordsOnly: true, Warn: func(err error) { t.Error(err) }}
	made, err := vectors.Build(t.Context(), inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	x, err := made.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph()
	if edges := g.Edges(); g.Nodes() != n || edges < 4*n || edges > 5*n {
		t.Errorf("%d nodes and %d edges, want %d and about five times as many", g.Nodes(), edges, n)
	}
	byType := g.Stats().NodesByType
	for _, want := range []struct {
		graph.NodeType
		nodes int
	}{{graph.File, n / 10}, {graph.Doc, n / 10}, {graph.Task, n / 10}, {graph.Function, n / 10 * 7}} {
		if byType[want.NodeType] != want.nodes {
			t.Errorf("%d nodes are a %v, want %d", byType[want.NodeType], want.NodeType, want.nodes)
		}
	}
	if again := nodeInputs(lexicaltest.New(1), 1, n); vectors.DigestInputs(again) != vectors.DigestInputs(inputs) {
		t.Error("the same seed makes other nodes")
	}
}

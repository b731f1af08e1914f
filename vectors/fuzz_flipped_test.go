package vectors_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// FuzzFlipped changes numbers in files whose sums are not compared, as those of a file that is known are not, and uses
// the index in every way: what comes of it may be wrong, but nothing panics, and Verify notices.
func FuzzFlipped(f *testing.F) {
	const begin = 192 // of the sections
	w := newWorld(5)
	made, err := vectors.Build(f.Context(), w.inputs(), options())
	if err != nil {
		f.Fatal(err)
	}
	var whole []byte
	if err := made.Write(func(b []byte) error { whole = append(whole, b...); return nil }); err != nil {
		f.Fatal(err)
	}
	o := options()
	o.Sound = true
	x, err := vectors.Open(whole, nil, o)
	if err != nil {
		f.Fatal(err)
	}
	w.files["f1/n1.go"] = file{symbols: []string{"S1", "S7"}, words: "new"}
	next, err := x.Stored.Update(f.Context(), []vectors.Input{w.input("f1/n1.go")}, []string{"file:f0/n1.go"})
	if err != nil {
		f.Fatal(err)
	}
	changes := joined(next.Delta())
	f.Add(uint32(0), uint32(0), uint32(0), uint32(0), false)
	f.Add(uint32(len(whole)/2), uint32(1<<31), uint32(len(whole)-200), uint32(255), true)
	f.Fuzz(func(t *testing.T, at1, value1, at2, value2 uint32, late bool) {
		snapshot, delta := slices.Clone(whole), slices.Clone(changes)
		first := snapshot
		if late {
			first = delta
		}
		put := func(data []byte, at, value uint32) {
			binary.LittleEndian.PutUint32(data[begin+int(at)%(len(data)-begin-4):], value)
		}
		put(first, at1, value1)
		put(snapshot, at2, value2)
		x, err := vectors.Open(snapshot, delta, o)
		if err != nil {
			return
		}
		useAll(t, x, w)
		if err := x.Verify(); err == nil && !bytes.Equal(snapshot, whole) {
			t.Error("a snapshot that is not what was written is verified")
		}
	})
}

// useAll does with an index whatever one can.
func useAll(t *testing.T, x *vectors.Index, w *world) {
	for _, q := range []vectors.Query{
		{Text: "word1 word3 S1"}, {Text: "word7 new", Mode: vectors.Vector, Exact: true, Domains: []graph.Domain{graph.Code}},
		{Text: "S2 S7", Labels: []string{"lang=go"}, Types: []graph.NodeType{graph.Function}, Thorough: true},
	} {
		if a, err := x.Search(t.Context(), q); err == nil && len(a.Results) > 10 {
			t.Errorf("%d results", len(a.Results))
		}
	}
	_, _ = x.Recall(3)
	g := x.Graph()
	for r := range g.All() {
		_, _ = g.Node(r), edges(g, r)
	}
	g.Stats()
	if next, err := x.Stored.Update(t.Context(), []vectors.Input{w.input("f1/n1.go")}, []string{"file:f2/n0.go"}); err == nil {
		next.Delta()
	}
}

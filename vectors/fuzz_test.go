package vectors

import (
	"testing"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/graph"
)

// sample is a snapshot and a delta of it.
func sample(tb testing.TB) (snapshot, delta []byte) {
	tb.Helper()
	part := func(body string) graph.Part {
		b := &graph.PartBuilder{}
		id := b.Add(graph.Item{Node: graph.Node{ID: "a.go", Type: graph.File, Name: "a.go", Labels: []string{"lang=go"}}, Title: "a", Body: body})
		b.Edge(id, graph.Defines, b.Add(graph.Item{Node: graph.Node{ID: "a.go:F", Type: graph.Function, Name: "F"}, Title: "F"}))
		b.Edge(id, graph.Imports, "missing/")
		return b.Part
	}
	facts := []graph.Provenance{{ID: "p", Node: "a.go", Source: "s"}}
	o := Options{WordsOnly: true, Dims: 4}
	made, err := Build(tb.Context(), []Input{{Name: "file:a.go", Digest: 1, Part: part("one"), Provenances: facts}}, o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := made.Write(func(b []byte) error { snapshot = append(snapshot, b...); return nil }); err != nil {
		tb.Fatal(err)
	}
	x, err := Open(snapshot, nil, o)
	if err != nil {
		tb.Fatal(err)
	}
	next, err := x.Stored.Update(tb.Context(), []Input{{Name: "file:a.go", Digest: 2, Part: part("two")}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot, join(next.Delta())
}

// file is what is written of the sections.
func (p *parts) file(tb testing.TB) *sections.File {
	tb.Helper()
	var data []byte
	if err := p.content().Write(func(b []byte) error { data = append(data, b...); return nil }); err != nil {
		tb.Fatal(err)
	}
	f, err := openFile(data, false)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func join(parts [][]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Whatever the bytes are, nothing panics, and what is opened can be searched.
func FuzzOpen(f *testing.F) {
	snapshot, delta := sample(f)
	f.Add(snapshot, delta)
	f.Add([]byte(format.Magic), []byte{})
	f.Fuzz(func(t *testing.T, snapshot, delta []byte) {
		x, err := Open(snapshot, delta, Options{Dims: 4})
		if err != nil {
			return
		}
		if _, err := x.Search(t.Context(), Query{Text: "one two"}); err != nil {
			t.Log(err)
		}
		_ = x.Verify()
	})
}

// The sections have sums, so that a fuzzer seldom gets through to what reads them: this goes there at once.
func FuzzSections(f *testing.F) {
	snapshot, delta := sample(f)
	for _, data := range [][]byte{snapshot, delta} {
		file, err := openFile(data, false)
		if err != nil {
			f.Fatal(err)
		}
		for i := range file.Sections() {
			f.Add(file.Get(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := decodeInputs(data); err == nil && len(h.names) != len(h.digests) {
			t.Error("inputs without digests")
		}
		c := &parts{}
		rest := data
		for i := range (&contributions{}).sections() {
			n := 4 * min(len(rest)/4, i+1)
			c.add(sectionContributions+i, rest[:n])
			rest = rest[n:]
		}
		c.add(sectionUnresolved, data)
		file := c.file(t)
		some := &contributions{names: []string{"a", "b"}}
		if err := some.read(file, 3); err == nil {
			some.holders(1, func(n int) bool { return len(some.nodesOf(n)) < len(data) && some.owner(0) < 2 })
		}
		if d, err := decodeDelta(data); err == nil {
			if _, err := decodeDelta(d.encode()); err != nil {
				t.Error("what was read cannot be written and read again")
			}
		}
		if all, err := decodeFacts(data, 1); err == nil {
			if _, err := decodeFacts(encodeFacts(all), 1); err != nil {
				t.Error("what was read cannot be written and read again")
			}
		}
		x := &Stored{base: file, contributions: &contributions{names: []string{"a"}}}
		for at := range uint32(8) {
			if e, err := x.unresolvedAt(at); err == nil && e.input != 0 {
				t.Error("a loose edge of an input that there is not")
			}
		}
		_ = hashTable(data).of("a.go")
	})
}

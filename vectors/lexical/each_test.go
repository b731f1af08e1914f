package lexical_test

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// Every term comes once, in order, with the documents that it is in; a Cutter cuts as Terms does.
func TestEachTerm(t *testing.T) {
	t.Parallel()
	corpus := lexicaltest.New(4)
	var docs []lexical.Document
	want := map[string][]uint32{}
	var cutter lexical.Cutter
	for doc := range 300 {
		d := lexical.Document{Title: "every " + corpus.Text(3), Body: corpus.Text(40)}
		docs = append(docs, d)
		var terms []string
		for _, text := range []string{d.Title, d.Body} {
			cutter.Cut(text, func(term []byte) { terms = append(terms, string(term)) })
		}
		if w := append(lexical.Terms(d.Title), lexical.Terms(d.Body)...); !slices.Equal(terms, w) {
			t.Fatalf("a cutter cuts %q, Terms %q", terms, w)
		}
		for _, term := range terms {
			if all := want[term]; len(all) == 0 || all[len(all)-1] != uint32(doc) {
				want[term] = append(all, uint32(doc))
			}
		}
	}
	x, err := lexical.Build(docs)
	if err != nil {
		t.Fatal(err)
	}
	last, terms := "", 0
	err = x.EachTerm(func(term []byte, docs func(func(uint32))) {
		var got []uint32
		docs(func(doc uint32) { got = append(got, doc) })
		if !slices.Equal(got, want[string(term)]) {
			t.Errorf("%q is in %v, want %v", term, got, want[string(term)])
		}
		if string(term) <= last {
			t.Errorf("%q comes after %q", term, last)
		}
		last = string(term)
		terms++
	})
	if err != nil || terms != len(want) {
		t.Errorf("%d terms, want %d: %v", terms, len(want), err)
	}
	broken := slices.Clone(x.Bytes())
	for at := len(broken) / 4; at < len(broken); at += 64 {
		broken[at] ^= 1
	}
	y, err := lexical.Open(broken)
	if err == nil {
		err = y.EachTerm(func(_ []byte, docs func(func(uint32))) { docs(func(uint32) {}) })
	}
	if err == nil {
		t.Error("damage is not told of")
	}
}

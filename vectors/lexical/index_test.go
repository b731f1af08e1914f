package lexical_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"reconcile.dev/reconcile/schemas/sections/sectionstest"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// TestBytes pins the format: the same documents are the same bytes on every machine, in every version of the format.
func TestBytes(t *testing.T) {
	x := build(t, lexicaltest.New(3).Documents(700))
	const want = "63c1e6"
	if got := fmt.Sprintf("%x", sha256.Sum256(x.Bytes()))[:6]; got != want {
		t.Errorf("the bytes of the index have the digest %s, want %s; another format needs another version", got, want)
	}
}

// TestOpenedAnswersAsBuilt checks that the bytes are all there is.
func TestOpenedAnswersAsBuilt(t *testing.T) {
	corpus := lexicaltest.New(4)
	built := build(t, corpus.Documents(2500))
	opened, err := lexical.Open(slices.Clone(built.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Verify(); err != nil {
		t.Fatal(err)
	}
	a, b := newSet(t, lexical.Segment{Index: built}), newSet(t, lexical.Segment{Index: opened})
	for _, query := range corpus.Queries(100) {
		if got, want := search(t, b, query, 20, nil), search(t, a, query, 20, nil); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", query, got, want)
		}
	}
}

// TestDamageIsNoticed flips every kind of byte: whoever reads all of it learns of it, and no search answers from a page
// that is not what was written.
func TestDamageIsNoticed(t *testing.T) {
	corpus := lexicaltest.New(5)
	whole := build(t, corpus.Documents(300)).Bytes()
	queries := corpus.Queries(20)
	right := answers(t, whole, queries)
	for at := 0; at < len(whole); at += 1 + len(whole)/997 {
		bad := slices.Clone(whole)
		bad[at] ^= 0x55
		x, err := lexical.Open(bad)
		if err == nil {
			if err := x.Verify(); !errors.Is(err, lexical.ErrDamaged) {
				t.Fatalf("byte %d of %d is damaged, and Verify says %v", at, len(bad), err)
			}
		}
		if got := answers(t, bad, queries); got != nil && !slices.EqualFunc(got, right, slices.Equal) {
			t.Fatalf("byte %d of %d is damaged, and the answers are wrong", at, len(bad))
		}
	}
	for n := range 200 {
		if _, err := lexical.Open(whole[:len(whole)*n/200]); !errors.Is(err, lexical.ErrDamaged) {
			t.Fatalf("cut to %d of 200 parts: %v, want ErrDamaged", n, err)
		}
	}
	if _, err := lexical.Open(append(slices.Clone(whole), make([]byte, 8)...)); !errors.Is(err, lexical.ErrDamaged) {
		t.Errorf("with more bytes at the end: %v, want ErrDamaged", err)
	}
}

// answers are those of an index in bytes, nil if it says that it is damaged.
func answers(t *testing.T, data []byte, queries []string) (out [][]lexical.Hit) {
	t.Helper()
	x, err := lexical.Open(data)
	if err != nil {
		return nil
	}
	s, err := lexical.NewSet(lexical.Segment{Index: x})
	if err != nil {
		return nil
	}
	for _, q := range queries {
		hits, err := s.Search(q, 20, nil)
		if errors.Is(err, lexical.ErrDamaged) {
			return nil
		}
		out = append(out, hits)
	}
	return out
}

// FuzzOpen makes files that are wrong, but whose checksums are right, and uses them in every way.
func FuzzOpen(f *testing.F) {
	docs := lexicaltest.New(6).Documents(40)
	for i := range docs {
		docs[i].Body = "common " + docs[i].Body
	}
	whole := build(f, docs).Bytes()
	f.Add(uint32(8), uint32(77), uint32(0), uint32(0))
	f.Add(uint32(len(whole)/2), uint32(1<<31), uint32(len(whole)-200), uint32(255))
	f.Add(uint32(31), uint32(191), uint32(152), uint32(49)) // more postings than there is room for
	f.Fuzz(func(t *testing.T, at1, value1, at2, value2 uint32) {
		data := slices.Clone(whole)
		binary.LittleEndian.PutUint32(data[int(at1)%(len(data)-4):], value1)
		binary.LittleEndian.PutUint32(data[int(at2)%(len(data)-4):], value2)
		sectionstest.Reseal(data)
		use(t, data)
	})
}

// use does with an index whatever one can; only panics are wrong.
func use(t *testing.T, data []byte) {
	x, err := lexical.Open(data)
	if err != nil {
		return
	}
	var gone lexical.Bitmap
	gone.Add(3)
	gone.Add(1000)
	for _, part := range []lexical.Segment{{Index: x}, {Index: x, Deleted: gone}} {
		_, err := lexical.Merge(part, part)
		if err != nil && !errors.Is(err, lexical.ErrDamaged) && !errors.Is(err, lexical.ErrTooMany) {
			t.Error(err)
		}
		s, err := lexical.NewSet(part, part)
		if err != nil {
			continue
		}
		for _, q := range []string{"common", "common error config", "the file index zzz"} {
			if hits, err := s.Search(q, 7, nil); err == nil && len(hits) > 7 {
				t.Errorf("%d hits", len(hits))
			}
			if counts, _, _, err := s.Overlap(q); err == nil && len(counts) != s.Docs() {
				t.Errorf("%d counts", len(counts))
			}
		}
	}
}

// TestSearchesAtOnce lets several goroutines share a set.
func TestSearchesAtOnce(t *testing.T) {
	corpus := lexicaltest.New(8)
	x, err := lexical.Open(bytes.Clone(build(t, corpus.Documents(1500)).Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, lexical.Segment{Index: x})
	queries := corpus.Queries(50)
	want := answers(t, x.Bytes(), queries)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, q := range queries {
				if got, err := set.Search(q, 20, nil); err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("%q: %v, %v, want %v", q, got, err, want[i])
				}
			}
		})
	}
	group.Wait()
}

func TestTooMany(t *testing.T) {
	if _, err := lexical.Build(make([]lexical.Document, lexical.MaxDocuments+1)); !errors.Is(err, lexical.ErrTooMany) {
		t.Errorf("%v, want ErrTooMany", err)
	}
}

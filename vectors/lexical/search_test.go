package lexical_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// build builds an index, or ends the test.
func build(t testing.TB, docs []lexical.Document) *lexical.Index {
	t.Helper()
	x, err := lexical.Build(docs)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func newSet(t testing.TB, segments ...lexical.Segment) *lexical.Set {
	t.Helper()
	s, err := lexical.NewSet(segments...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func search(t testing.TB, s *lexical.Set, query string, limit int, accept func(int) bool) []lexical.Hit {
	t.Helper()
	hits, err := s.Search(query, limit, accept)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// grown is a set of several segments with deleted documents, and what is left in one.
type grown struct {
	set     *lexical.Set
	left    []lexical.Document
	numbers []int // of the documents left, in the set
	parts   []lexical.Segment
}

// grow parts documents at random and deletes some.
func grow(t testing.TB, random *rand.Rand, docs []lexical.Document, segments int, deleted float64) grown {
	var g grown
	large := len(docs) * 9 / 10 // the first segment is large, the others share the rest
	for i := range segments {
		from, to := 0, large
		if segments == 1 {
			to = len(docs)
		}
		if i > 0 {
			from, to = large+(len(docs)-large)*(i-1)/(segments-1), large+(len(docs)-large)*i/(segments-1)
		}
		var gone lexical.Bitmap
		for n := from; n < to; n++ {
			if random.Float64() < deleted {
				gone.Add(n - from)
				continue
			}
			g.numbers = append(g.numbers, n)
			g.left = append(g.left, docs[n])
		}
		g.parts = append(g.parts, lexical.Segment{Index: build(t, docs[from:to]), Deleted: gone})
	}
	g.set = newSet(t, g.parts...)
	return g
}

// TestSegmentsAnswerAsOneIndex checks that searching segments with deleted documents gives exactly what one index of
// what is left gives: documents, scores, order, counts.
func TestSegmentsAnswerAsOneIndex(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		corpus := lexicaltest.New(seed)
		docs := corpus.Documents(1 + random.IntN(3000))
		for i := range docs {
			docs[i].Key %= 3 // equal keys, too
			if i%5 == 0 {
				docs[i].Body = docs[i/10].Body // equal scores
				docs[i].Title = docs[i/10].Title
			}
		}
		g := grow(t, random, docs, 2+random.IntN(4), []float64{0, 0.01, 0.3}[seed%3])
		whole := newSet(t, lexical.Segment{Index: build(t, g.left)})
		if g.set.Live() != len(g.left) || g.set.Docs() != len(docs) {
			t.Fatalf("%d of %d documents are left, want %d of %d", g.set.Live(), g.set.Docs(), len(g.left), len(docs))
		}
		odd := func(doc int) bool { return doc%2 == 1 }
		for i, query := range corpus.Queries(200) {
			limit := []int{1, 3, 20, 1000}[i%4]
			var inGrown, inWhole func(int) bool
			if i%3 == 0 {
				inGrown, inWhole = odd, func(doc int) bool { return odd(g.numbers[doc]) }
			}
			got, want := search(t, g.set, query, limit, inGrown), search(t, whole, query, limit, inWhole)
			for i := range want {
				want[i].Doc = g.numbers[want[i].Doc]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %q, %d: the segments answer\n%v, one index\n%v", seed, query, limit, got, want)
			}
			sameOverlap(t, g, whole, query)
		}
		merged, err := lexical.Merge(g.parts...)
		if err != nil {
			t.Fatal(err)
		}
		if string(merged.Bytes()) != string(build(t, g.left).Bytes()) {
			t.Errorf("seed %d: merging does not make the bytes that building makes", seed)
		}
	}
}

func sameOverlap(t *testing.T, g grown, whole *lexical.Set, query string) {
	t.Helper()
	got, total, _, err := g.set.Overlap(query)
	if err != nil {
		t.Fatal(err)
	}
	want, total2, _, err := whole.Overlap(query)
	if err != nil {
		t.Fatal(err)
	}
	var sparse []uint16
	for _, n := range g.numbers {
		sparse = append(sparse, got[n])
	}
	sum := func(counts []uint16) (n int) {
		for _, c := range counts {
			n += int(c)
		}
		return n
	}
	if total != total2 || !slices.Equal(sparse, want) || sum(got) != sum(want) {
		t.Fatalf("%q: the segments' overlap differs from that of one index", query)
	}
}

// reference searches as the definition says, from the terms of the texts.
type reference struct {
	docs   []map[string]int
	length []int
	titles []map[string]bool
}

func newReference(docs []lexical.Document) *reference {
	r := &reference{}
	for _, d := range docs {
		counts, title, length := map[string]int{}, map[string]bool{}, 0
		for _, term := range lexical.Terms(d.Title) {
			counts[term] += lexical.TitleWeight
			title[term] = true
			length += lexical.TitleWeight
		}
		for _, term := range lexical.Terms(d.Body) {
			counts[term]++
			length++
		}
		r.docs, r.titles, r.length = append(r.docs, counts), append(r.titles, title), append(r.length, length)
	}
	return r
}

// search returns the scores of all documents that have a term of the query, as floating-point BM25.
func (r *reference) search(query string) map[int]float64 {
	total := 0
	for _, n := range r.length {
		total += lexical.RoundedLength(n)
	}
	average := float64(total) / float64(len(r.docs))
	out := map[int]float64{}
	terms := lexical.Terms(query)
	slices.Sort(terms)
	for _, term := range slices.Compact(terms) {
		df := 0
		for _, d := range r.docs {
			if d[term] > 0 {
				df++
			}
		}
		for doc, d := range r.docs {
			if d[term] > 0 {
				out[doc] += lexical.BM25(len(r.docs), df, min(d[term], 15), lexical.RoundedLength(r.length[doc]), average)
			}
		}
	}
	return out
}

// TestSearchIsBM25 compares with a search that follows the definition.
func TestSearchIsBM25(t *testing.T) {
	corpus := lexicaltest.New(7)
	docs := corpus.Documents(1200)
	set, plain := newSet(t, lexical.Segment{Index: build(t, docs)}), newReference(docs)
	for _, query := range corpus.Queries(300) {
		want := plain.search(query)
		got := search(t, set, query, len(docs), nil)
		if len(got) != len(want) {
			t.Fatalf("%q: %d documents, want %d", query, len(got), len(want))
		}
		for i, hit := range got {
			if diff := float64(hit.Score) - want[hit.Doc]; diff > 0.01 || diff < -0.01 {
				t.Fatalf("%q: document %d has score %v, want %v", query, hit.Doc, hit.Score, want[hit.Doc])
			}
			if i > 0 && got[i-1].Score < hit.Score {
				t.Fatalf("%q: %v is before %v", query, got[i-1], hit)
			}
		}
		// The best few are those of the whole: nothing is left out that should not be.
		if best := search(t, set, query, 10, nil); !slices.Equal(best, got[:min(10, len(got))]) {
			t.Fatalf("%q: the best ten are %v, want %v", query, best, got[:10])
		}
	}
}

// TestNothingIsLeftOut compares with what adding everything up gives, exactly: in corpora whose words are so frequent that
// each kind of list and of query occurs, at the edges of windows and groups, with equal scores and deleted documents.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ docs, words, segments int }{
		{1, 3, 1}, {63, 5, 1}, {64, 40, 1}, {65, 9, 1}, {300, 400, 3}, {2000, 30, 1}, {9000, 5000, 4}, {70_000, 300, 1},
	} {
		t.Run(fmt.Sprint(c.docs), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(c.docs), 2))
			word := func() string { return fmt.Sprintf("w%c", 'α'+int(float64(c.words)*math.Pow(random.Float64(), 3))) }
			docs := make([]lexical.Document, c.docs)
			for i := range docs {
				var words []string
				for range random.IntN(8) {
					words = append(words, word())
				}
				docs[i] = lexical.Document{Title: word(), Body: strings.Join(words, " "), Key: random.Uint64N(5)}
			}
			deleted := []float64{0, 0.2}[c.segments%2]
			set := grow(t, random, docs, c.segments, deleted).set
			for i := range 40 + 100*300/(300+c.docs) {
				query := word()
				for range random.IntN([]int{1, 3, 6, 40}[i%4]) {
					query += " " + word()
				}
				limit := []int{20, 1, 3, 64, 65, 1000, 1 << 30}[i%7]
				var accept func(int) bool
				if i%5 == 0 {
					accept = func(doc int) bool { return doc%3 == 1 }
				}
				want, err := set.Plain(query, limit, accept)
				if err != nil {
					t.Fatal(err)
				}
				if got := search(t, set, query, limit, accept); !slices.Equal(got, want) {
					t.Fatalf("%q, %d: %d documents\n%v, want %d\n%v", query, limit, len(got), got[:min(9, len(got))], len(want), want[:min(9, len(want))])
				}
			}
		})
	}
}

// TestSmallIndexes checks indexes of which a query has every word of every document: alone, and beside a larger one.
func TestSmallIndexes(t *testing.T) {
	t.Parallel()
	const all = "Chose the repository pattern with one adapter per environment, because databases differ"
	for _, size := range []int{1, 2, 15, 16, 17, 33, 64, 65} {
		docs := make([]lexical.Document, size)
		for i := range docs {
			docs[i] = lexical.Document{Title: fmt.Sprintf("%s case%d", all, i), Body: fmt.Sprintf("%s place%d", all, i%3)}
		}
		small := lexical.Segment{Index: build(t, docs)}
		large := lexical.Segment{Index: build(t, lexicaltest.New(6).Documents(500))}
		for _, segments := range [][]lexical.Segment{{small}, {small, large}} {
			set := newSet(t, segments...)
			for i, d := range docs {
				hits := search(t, set, d.Title+" "+d.Body, size, nil)
				if want, err := set.Plain(d.Title+" "+d.Body, size, nil); err != nil || !slices.Equal(hits, want) {
					t.Fatalf("%d documents: %v, %v, want %v", size, hits, err, want)
				}
				if len(hits) != size || hits[0].Doc != i {
					t.Fatalf("%d documents: %v, want all, and document %d first", size, hits, i)
				}
			}
			counts, total, _, err := set.Overlap(all)
			if err != nil || total != len(lexical.Terms(all)) {
				t.Fatalf("%d documents: %d terms, %v, want %d", size, total, err, len(lexical.Terms(all)))
			}
			for _, n := range counts[:size] {
				if int(n) != total {
					t.Fatalf("%d documents: the titles have %v terms, want %d each", size, counts[:size], total)
				}
			}
		}
	}
}

// TestT10_TenThousand is scenario T10: 10,000 observations, of which the right ones are found.
func TestT10_TenThousand(t *testing.T) {
	corpus := lexicaltest.New(10)
	docs := corpus.Documents(10_000)
	for i := range 40 {
		docs[i*250].Title = fmt.Sprintf("Chose marker%c for zoneplan%d", 'a'+i%26, i)
	}
	set := newSet(t, lexical.Segment{Index: build(t, docs)})
	for i := range 40 {
		query := fmt.Sprintf("what did we decide about the zoneplan%d error code", i)
		hits := search(t, set, query, 20, nil)
		if len(hits) != 20 || hits[0].Doc != i*250 {
			t.Errorf("%s: %v, want document %d first and 20 in all", query, hits[:1], i*250)
		}
	}
	plain := newReference(docs)
	for _, query := range corpus.Queries(5) {
		want := plain.search(query)
		for _, hit := range search(t, set, query, 20, nil) {
			better := 0
			for _, score := range want {
				if score > float64(hit.Score)+0.01 {
					better++
				}
			}
			if better >= 20 {
				t.Errorf("%s: document %d is not among the best 20: %d are better", query, hit.Doc, better)
			}
		}
	}
}

func TestEmptyAnswers(t *testing.T) {
	set := newSet(t, lexical.Segment{Index: build(t, []lexical.Document{{Title: "one"}, {}})})
	for query, limit := range map[string]int{"": 5, "the of": 5, "two": 5, "one": 0, "🚀": 5, "\xff": 5} {
		if hits := search(t, set, query, limit, nil); len(hits) != 0 {
			t.Errorf("%q: %v, want nothing", query, hits)
		}
	}
	if hits := search(t, newSet(t), "one", 5, nil); len(hits) != 0 {
		t.Errorf("an empty set finds %v", hits)
	}
	if hits := search(t, set, strings.Repeat("one two ", 5000), 5, nil); len(hits) != 1 || hits[0].Doc != 0 {
		t.Errorf("a long query finds %v, want document 0", hits)
	}
}

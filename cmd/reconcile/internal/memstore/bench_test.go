package memstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// BenchmarkSearch searches in a process that has searched before, for one to five words.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			texts := lexicaltest.New(1)
			dir := b.TempDir()
			writeMemory(b, dir, n, texts)
			m := openMemory(b, dir)
			queries := oneToFiveWords(texts)
			var times []time.Duration
			search := func(i int) {
				if _, err := m.Search(b.Context(), memstore.Query{Text: queries[i%len(queries)]}); err != nil {
					b.Fatal(err)
				}
			}
			for i := range queries {
				search(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				search(i)
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
		})
	}
}

// BenchmarkFirstSearch reads all issue files and indexes them, as the first search does where there is no cache.
func BenchmarkFirstSearch(b *testing.B) {
	texts := lexicaltest.New(1)
	dir := b.TempDir()
	writeMemory(b, dir, 50_000, texts)
	openMemory(b, dir) // brings the manifest in step
	b.ReportAllocs()
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(dir, ".reconcile")); err != nil {
			b.Fatal(err)
		}
		openMemory(b, dir)
	}
}

// BenchmarkCapture captures 50 observations, durably, in a process that has captured before.
func BenchmarkCapture(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			texts := lexicaltest.New(1)
			dir := b.TempDir()
			writeMemory(b, dir, n, texts)
			m := openMemory(b, dir)
			captured := 0
			capture := func() time.Duration {
				s := &schemas.ObservationSpec{
					Agent: "engineer", Issue: 1 + captured*7919%(n/100), Timestamp: schemas.NewTime(noon.Add(time.Duration(captured) * time.Minute)),
				}
				for i := range 50 {
					content := texts.Text(25 + i)
					s.Entries = append(s.Entries, schemas.ObservationEntry{
						Category: schemas.Categories()[i%5], Content: content, Summary: memory.Summary(content),
					})
				}
				captured++
				start := time.Now()
				if c, err := m.Capture(b.Context(), s); err != nil || len(c.Observations) != 50 {
					b.Fatalf("captured %d observations: %v", len(c.Observations), err)
				}
				return time.Since(start)
			}
			capture() // brings the manifest in step
			var times []time.Duration
			for b.Loop() {
				times = append(times, capture())
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// openMemory opens the memory of a tree as a new process does, and searches once.
func openMemory(b *testing.B, dir string) *memstore.Files {
	b.Helper()
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Build: "test"})
	if err != nil {
		b.Fatal(err)
	}
	m := memstore.Open(store, memstore.Options{Now: time.Now, Kinds: controllers.Schemas()})
	b.Cleanup(func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := m.Search(b.Context(), memstore.Query{Text: "cache"}); err != nil {
		b.Fatal(err)
	}
	return m
}

// oneToFiveWords are queries for words as they occur in texts.
func oneToFiveWords(texts *lexicaltest.Corpus) []string {
	random := rand.New(rand.NewPCG(1, 1))
	queries := make([]string, 1000)
	for i := range queries {
		words := make([]string, 1+random.IntN(5))
		for k := range words {
			words[k] = texts.Word()
		}
		queries[i] = strings.Join(words, " ")
	}
	return queries
}

// writeMemory writes the issue files of n observations of 25 to 74 words, 100 to an issue. A third is about a file.
func writeMemory(b *testing.B, dir string, n int, texts *lexicaltest.Corpus) {
	b.Helper()
	agents := []string{"engineer", "architect", "tester", "reviewer"}
	begin := noon.AddDate(0, 0, -90)
	for issue := 1; issue <= n/100; issue++ {
		f := schemas.MemoryFile{Version: schemas.MemoryVersion, IssueNumber: issue}
		for i := range 100 {
			at := begin.Add(time.Duration(100*issue+i) * time.Second)
			o := schemas.Observation{
				Agent: agents[i%len(agents)], IssueNumber: issue, Category: schemas.Categories()[i%5],
				Content: texts.Text(25 + i%50), Timestamp: schemas.StampOfTime(at), SessionID: "one", Source: "one", Tokens: 60,
			}
			o.Summary = memory.Summary(o.Content)
			o.ID = memory.NewID(o.Agent, issue, at, "one", i, o.Content)
			if i%3 == 0 {
				o.Anchors = []schemas.Anchor{{Path: fmt.Sprintf("src/file%d.go", i%50), Digest: schemas.AnchorAbsent}}
			}
			f.Observations = append(f.Observations, o)
		}
		data, err := json.Marshal(f)
		if err != nil {
			b.Fatal(err)
		}
		p := filepath.Join(dir, "state/memory", fmt.Sprintf("issue-%d.json", issue))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
}

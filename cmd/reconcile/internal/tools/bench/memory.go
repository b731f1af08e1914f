package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// entriesEach is how many observations a capture has: the most there may be.
const entriesEach = 50

// remembered is a tree with a memory, on the disk where temporary files are.
type remembered struct {
	dir   string
	n     int // observations
	texts *lexicaltest.Corpus
	begun time.Time
	next  int // number of the next capture
	alike int // how many observations in a row say nearly the same; 0: none do
}

// memoryStores are the sizes of the stores that agentx-spec, memory pipeline 7.1 specifies figures for.
var memoryStores = []int{10_000, 50_000}

// memory: capture, search, recall and reading of observations, compared with the figures of the specification.
func (b *bench) memory(ctx context.Context, _ []int) error {
	for _, n := range memoryStores {
		r := &remembered{
			dir: filepath.Join(b.trees, fmt.Sprint("memory-", n)), n: n, texts: lexicaltest.New(b.seed), begun: time.Now().Add(-90 * 24 * time.Hour),
		}
		if err := r.make(ctx); err != nil {
			return err
		}
		for _, measure := range []func(context.Context, *remembered) error{
			b.memoryProcess, b.memoryFiles, b.memorySearch, b.memoryRecall, b.memoryCapture,
		} {
			if err := measure(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) memoryName(r *remembered, what string) string {
	return fmt.Sprintf("memory of %d: %s", r.n, what)
}

// spec is another capture, of observations with 25 to 74 words, where the example of the specification has 27, about one
// of a hundredth as many issues as there are observations.
func (r *remembered) spec() *schemas.ObservationSpec {
	agents := []string{"engineer", "architect", "tester", "reviewer"}
	categories := schemas.Categories()
	at := r.begun.Add(time.Duration(r.next) * time.Minute)
	issues := max(1, r.n/100)
	s := &schemas.ObservationSpec{
		Agent: agents[r.next%len(agents)], Issue: 1 + r.next*7919%issues, Session: fmt.Sprint("session-", r.next),
		Timestamp: schemas.NewTime(at), SourceTokens: 20_000,
	}
	common := ""
	for i := range entriesEach {
		e := schemas.ObservationEntry{Category: categories[i%len(categories)]}
		if r.alike == 0 {
			e.Content = r.texts.Text(25 + i)
		} else {
			if i%r.alike == 0 {
				common = r.texts.Text(30)
			}
			e.Category = categories[i/r.alike%len(categories)]
			e.Content = common + " " + r.texts.Text(8)
		}
		e.Summary = memory.Summary(e.Content)
		if i%3 == 0 {
			p := fmt.Sprintf("src/file%d.go", i)
			e.Anchors, e.Digests = []string{p}, map[string]string{p: "sha256:" + strings.Repeat("0", 64)}
		}
		s.Entries = append(s.Entries, e)
	}
	r.next++
	return s
}

// make writes the Observations of a store, and runs reconcile on them.
func (r *remembered) make(ctx context.Context) error {
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}
	r.next = 0
	for i := range entriesEach {
		if err := writeFile(filepath.Join(r.dir, fmt.Sprintf("src/file%d.go", i)), strings.Repeat("package src // a line\n", 200)); err != nil {
			return err
		}
	}
	for r.next < r.n/entriesEach {
		name := fmt.Sprintf("capture-%d", r.next)
		src, err := document.Spec(schemas.Ref{Kind: "Observation", Name: name}, r.spec())
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(r.dir, "specs/observations", name+".yaml"), string(src)); err != nil {
			return err
		}
	}
	return r.in(func(s *state.Store, m *memstore.Files) error {
		l, err := s.Lock(ctx)
		if err != nil {
			return err
		}
		t, err := s.Load(ctx)
		if err == nil {
			_, err = m.Settle(ctx, t)
		}
		return errors.Join(err, l.Release())
	})
}

// in opens the memory as a new process does.
func (r *remembered) in(do func(*state.Store, *memstore.Files) error) error {
	s, err := openStore(r.dir)
	if err != nil {
		return err
	}
	m := memstore.Open(s, memstore.Options{Now: time.Now, Kinds: controllers.Schemas()})
	return errors.Join(do(s, m), m.Close(), s.Close())
}

// memorySearch: searches in a process that has searched before, for one to five words.
func (b *bench) memorySearch(ctx context.Context, r *remembered) error {
	random := rand.New(rand.NewPCG(b.seed, 1))
	return r.in(func(_ *state.Store, m *memstore.Files) error {
		queries := make([]string, 1000)
		for i := range queries {
			words := make([]string, 1+random.IntN(5))
			for k := range words {
				words[k] = r.texts.Word()
			}
			queries[i] = strings.Join(words, " ")
		}
		times, err := sample(2000*b.runs, func(i int) error {
			_, err := m.Search(ctx, memstore.Query{Text: queries[i%len(queries)]})
			return err
		})
		if err != nil {
			return err
		}
		bounds := []float64{10, 50}
		if r.n > 10_000 {
			bounds = []float64{25, 150}
		}
		for i, share := range []float64{0.5, 0.99} {
			took := quantile(times, share)
			b.row(b.memoryName(r, fmt.Sprintf("search, warm, p%g", 100*share)), short(took), "200 ms", short(took), float64(took.Nanoseconds())/1e3,
				bounds[i], " µs")
		}
		return nil
	})
}

// memoryRecall: what a process does that starts an agent.
func (b *bench) memoryRecall(ctx context.Context, r *remembered) error {
	for _, fresh := range []bool{true, false} {
		var times []time.Duration
		err := r.in(func(_ *state.Store, m *memstore.Files) (err error) {
			recall := func(m *memstore.Files) error {
				found, err := m.Recall(ctx, memstore.Request{Agent: "engineer", Issue: 7, Context: r.texts.Text(40), Dry: true})
				if err == nil && len(found.IDs) == 0 {
					err = errors.New("nothing was recalled")
				}
				return err
			}
			times, err = sample(10*b.runs, func(int) error {
				if fresh {
					return r.in(func(_ *state.Store, m *memstore.Files) error { return recall(m) })
				}
				return recall(m)
			})
			return err
		})
		if err != nil {
			return err
		}
		what := "recall, warm (p50; p99)"
		if fresh {
			what = "recall, opened anew (p50; p99)"
		}
		b.quantiles(b.memoryName(r, what), "500 ms", times, 30)
	}
	return nil
}

// memoryFiles: reading an issue file and the manifest, and how large all is.
func (b *bench) memoryFiles(ctx context.Context, r *remembered) error {
	dir := filepath.Join(r.dir, "state", "memory")
	got, err := alternate(3*b.runs, func() (usage, error) {
		start := time.Now()
		data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err == nil {
			_, err = memory.ParseManifest(data)
		}
		return usage{wall: time.Since(start)}, err
	})
	if err != nil {
		return err
	}
	b.row(b.memoryName(r, "manifest, cold"), short(got[0].wall), "100 ms", trim(ms(got[0].wall))+" ms", ms(got[0].wall), 15*float64(r.n)/10_000, " ms")
	err = r.in(func(_ *state.Store, m *memstore.Files) error {
		times, err := sample(20*b.runs, func(i int) error {
			all, err := m.ByIssue(ctx, 1+i%(r.n/100))
			if err == nil && len(all) == 0 {
				err = errors.New("an issue has nothing")
			}
			return err
		})
		if err == nil {
			b.quantiles(b.memoryName(r, "one issue file (p50; p99)"), "20 ms", times, 2)
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.memorySizes(r, dir)
}

func (b *bench) memorySizes(r *remembered, dir string) error {
	size := func(pattern string) (sum float64, err error) {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		for _, p := range files {
			fi, err := os.Stat(p)
			if err != nil {
				return 0, err
			}
			sum += float64(fi.Size())
		}
		return sum / 1e6, err
	}
	manifest, err := size("manifest.json")
	if err != nil {
		return err
	}
	issues, err := size("issue-*.json")
	if err != nil {
		return err
	}
	cache, err := size("../../.reconcile/memory/*")
	if err != nil {
		return err
	}
	share := float64(r.n) / 50_000
	mb := func(f float64) string { return fmt.Sprintf("%.1f MB", f) }
	b.row(b.memoryName(r, "store, without its manifest"), mb(issues), mb(50*share), mb(issues), issues, 50*share, " MB")
	b.row(b.memoryName(r, "manifest"), mb(manifest), mb(3*share), mb(manifest), manifest, 17*share, " MB")
	b.row(b.memoryName(r, "cache"), mb(cache), "", mb(cache), cache, 0, " MB")
	return nil
}

// memoryProcess: reconcile memory search as a whole process, with caches and with none.
func (b *bench) memoryProcess(ctx context.Context, r *remembered) error {
	if r.n != memoryStores[len(memoryStores)-1] {
		return nil
	}
	query := r.texts.Word() + " " + r.texts.Word()
	search := func() (usage, error) { return process(b.reconcile(ctx, r.dir, "memory", "search", query)) }
	warm, err := alternate(b.runs, search)
	if err != nil {
		return err
	}
	cold, err := alternate(max(1, b.runs/2), func() (usage, error) {
		if err := os.RemoveAll(filepath.Join(r.dir, ".reconcile")); err != nil {
			return usage{}, err
		}
		return search()
	})
	if err != nil {
		return err
	}
	b.row(b.memoryName(r, "search, whole process, warm"), short(warm[0].wall), "", trim(ms(warm[0].wall))+" ms", ms(warm[0].wall), 80, " ms")
	b.row(b.memoryName(r, "search, whole process, no cache"), short(cold[0].wall), "", trim(ms(cold[0].wall))+" ms", ms(cold[0].wall), 1500, " ms")
	peak, err := peakApart(ctx, b.reconcile(ctx, r.dir, "memory", "search", query))
	if err == nil {
		err = os.RemoveAll(filepath.Join(r.dir, ".reconcile"))
	}
	if err != nil {
		return err
	}
	most, err := peakApart(ctx, b.reconcile(ctx, r.dir, "memory", "search", query))
	b.row(b.memoryName(r, "search, peak memory, warm; no cache"), mib(peak), mib(most), mib(most), float64(most)/(1<<20), 300, " MiB")
	return err
}

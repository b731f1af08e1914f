package filter_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/vectors/filter"
	"reconcile.dev/reconcile/vectors/graph"
)

type keys = map[graph.Domain][]uint64

// someKeys are n keys that depend on the seed.
func someKeys(seed uint64, n int) []uint64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]uint64, n)
	for i := range out {
		out[i] = rng.Uint64()
	}
	return out
}

// reopened is the set after its bytes were written and opened.
func reopened(t *testing.T, s *filter.Set) *filter.Set {
	t.Helper()
	data := s.AppendTo([]byte("before"))[len("before"):]
	out, err := filter.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.AppendTo(nil), data) {
		t.Error("opened and written again, the bytes differ")
	}
	return out
}

func TestEverySizeHasItsKeys(t *testing.T) {
	t.Parallel()
	for n := range 300 {
		checkHas(t, n)
	}
	for _, n := range []int{1000, 1 << 12, 50_000} {
		checkHas(t, n)
	}
}

// checkHas: a set of n keys, and one to which they came later, has them in their domain and hardly others.
func checkHas(t *testing.T, n int) {
	t.Helper()
	all := someKeys(uint64(n), n)
	half := n / 2
	built := filter.Build(keys{graph.History: all})
	later := filter.Build(keys{graph.History: all[:half]}).With(keys{graph.History: all[half:]})
	for i, s := range []*filter.Set{built, later, reopened(t, built), reopened(t, later)} {
		for _, key := range all {
			if !s.Contains(graph.History, key) {
				t.Fatalf("set %d of %d keys lacks one", i, n)
			}
			if s.Contains(graph.Code, key) || s.Contains(graph.Academic, key) || s.Contains(0, key) || s.Contains(9, key) {
				t.Fatalf("set %d of %d keys has one in another domain", i, n)
			}
		}
		wrong := 0
		others := someKeys(uint64(n)+1_000_000, 4000)
		for _, key := range others {
			if s.Contains(graph.History, key) {
				wrong++
			}
		}
		if wrong > 60 { // 4000/256 are 16, and those of the layers
			t.Errorf("set %d of %d keys has %d of %d others", i, n, wrong, len(others))
		}
	}
}

// TestSmallNumbers: keys need not be hashes.
func TestSmallNumbers(t *testing.T) {
	t.Parallel()
	var all []uint64
	for i := range uint64(5000) {
		all = append(all, i, i<<40)
	}
	for _, s := range []*filter.Set{filter.Build(keys{graph.Code: all}), filter.Build(nil).With(keys{graph.Code: all})} {
		for _, key := range all {
			if !s.Contains(graph.Code, key) {
				t.Fatal("a key is missing")
			}
		}
		wrong := 0
		for i := range uint64(10_000) {
			if s.Contains(graph.Code, 1<<20+i) {
				wrong++
			}
		}
		if wrong > 150 {
			t.Errorf("%d of 10,000 others are found", wrong)
		}
	}
}

func TestSameBytesFromAnyOrder(t *testing.T) {
	t.Parallel()
	all := someKeys(1, 3000)
	want := filter.Build(keys{graph.Code: all, graph.Academic: all[:10]}).AppendTo(nil)
	again := slices.Concat(all[500:], all)
	slices.Reverse(again)
	if got := filter.Build(keys{graph.Code: again, graph.Academic: append(all[5:10:10], all[:7]...)}).AppendTo(nil); !bytes.Equal(got, want) {
		t.Error("other order and duplicates give other bytes")
	}
	if !slices.Equal(all, someKeys(1, 3000)) {
		t.Error("the given keys were reordered")
	}
}

func TestWithLeavesTheOldSet(t *testing.T) {
	t.Parallel()
	sets := []*filter.Set{filter.Build(keys{graph.Code: someKeys(2, 100)})}
	var bytesOf [][]byte
	for i := range 40 {
		bytesOf = append(bytesOf, sets[i].AppendTo(nil))
		sets = append(sets, sets[i].With(keys{graph.Code: someKeys(uint64(100+i), 50), graph.History: someKeys(uint64(i), i%2)}))
	}
	for i, want := range bytesOf {
		if !bytes.Equal(sets[i].AppendTo(nil), want) {
			t.Fatalf("set %d was changed by what was made of it", i)
		}
	}
	last := sets[len(sets)-1]
	for i := range 40 {
		for _, key := range someKeys(uint64(100+i), 50) {
			if !last.Contains(graph.Code, key) {
				t.Fatalf("a key that came with set %d is missing", i+1)
			}
		}
	}
	// Two sets of one do not see each other's keys, and none is lost.
	a, b := sets[3].With(keys{graph.Code: {7}}), sets[3].With(keys{graph.Code: {8}})
	if !a.Contains(graph.Code, 7) || !b.Contains(graph.Code, 8) || a.Contains(graph.Code, 8) || b.Contains(graph.Code, 7) {
		t.Error("two sets that come of one are mixed up")
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := filter.Build(keys{graph.Code: {filter.Key("retry"), filter.Key("tree")}, graph.Academic: {filter.Key("tree")}})
	s = s.With(keys{graph.History: {filter.Key("retry")}})
	for _, c := range []struct {
		terms []string
		want  string
	}{
		{[]string{"retry"}, "[code history]"},
		{[]string{"absent", "tree"}, "[code academic]"},
		{[]string{"absent"}, "[]"},
		{nil, "[]"},
	} {
		var of []uint64
		for _, term := range c.terms {
			of = append(of, filter.Key(term))
		}
		if got := fmt.Sprint(s.Probe(of)); got != c.want {
			t.Errorf("%v: %s, want %s", c.terms, got, c.want)
		}
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	all := someKeys(3, 20_000)
	s := filter.Build(keys{graph.Code: all[:10_000]}).With(keys{graph.Code: all, graph.History: all[:2]})
	st := s.Stats()
	code := st[graph.Code]
	// Of what came later, some is taken for something that is there.
	if code.Keys != 10_000 || code.Pending < 9_850 || code.Pending > 10_000 || code.Bytes < 10_000*10/8 {
		t.Errorf("%+v", code)
	}
	wrong, others := 0, someKeys(4, 100_000)
	for _, key := range others {
		if s.Contains(graph.Code, key) {
			wrong++
		}
	}
	if got := float64(wrong) / float64(len(others)); got < code.FalsePositives*0.7 || got > code.FalsePositives*1.3 {
		t.Errorf("%v of others are found, %v were expected", got, code.FalsePositives)
	}
	if st[graph.History].Pending != 2 || st[graph.Academic] != (filter.Stats{}) {
		t.Errorf("%+v", st)
	}
}

func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	s := filter.Build(keys{graph.Code: someKeys(5, 40)}).With(keys{graph.History: someKeys(6, 900)})
	data := s.AppendTo(nil)
	for size := range len(data) {
		if _, err := filter.Open(data[:size]); !errors.Is(err, filter.ErrDamaged) {
			t.Fatalf("%d of %d bytes: %v", size, len(data), err)
		}
	}
	if _, err := filter.Open(append(slices.Clone(data), make([]byte, 64)...)); !errors.Is(err, filter.ErrDamaged) {
		t.Error("bytes too many:", err)
	}
	for at := range data {
		broken := slices.Clone(data)
		broken[at] ^= 0xa5
		if s, err := filter.Open(broken); err == nil {
			use(s)
		}
	}
}

// use asks a set everything, whatever it answers.
func use(s *filter.Set) {
	s.Probe(someKeys(7, 5))
	s = s.With(keys{graph.Code: someKeys(8, 3), graph.Academic: {1}})
	s.Stats()
	s.AppendTo(nil)
}

func FuzzOpen(f *testing.F) {
	f.Add(filter.Build(nil).AppendTo(nil))
	f.Add(filter.Build(keys{graph.Code: someKeys(9, 9)}).With(keys{graph.History: someKeys(10, 3)}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := filter.Open(data)
		if err != nil {
			if !errors.Is(err, filter.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		use(s)
	})
}

// TestReadersBesideWriter: what was added before a reader began is always found. It is for the race detector, too.
func TestReadersBesideWriter(t *testing.T) {
	t.Parallel()
	all := someKeys(11, 3000)
	var current atomic.Pointer[filter.Set]
	var added atomic.Int64
	current.Store(filter.Build(nil))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				n := added.Load()
				s := current.Load()
				for _, key := range all[:n] {
					if !s.Contains(graph.Code, key) {
						t.Error("a key that was added is missing")
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := 0; i < len(all); i += 20 {
		if i%600 == 0 {
			current.Store(filter.Build(keys{graph.Code: all[:i]})) // as a rebuild does
		}
		current.Store(current.Load().With(keys{graph.Code: all[i : i+20]}))
		added.Store(int64(i + 20))
	}
	close(stop)
	readers.Wait()
}

func BenchmarkProbe(b *testing.B) {
	all := someKeys(12, 200_000)
	s := filter.Build(keys{graph.Code: all, graph.History: all[:50_000], graph.Academic: all[:80_000]}).
		With(keys{graph.Code: someKeys(13, 5000)})
	query := someKeys(14, 4) // not there
	for b.Loop() {
		if len(s.Probe(query)) > 2 {
			b.Fatal("found")
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	all := keys{graph.Code: someKeys(12, 200_000)}
	for b.Loop() {
		filter.Build(all)
	}
}

func BenchmarkWith(b *testing.B) {
	s := filter.Build(keys{graph.Code: someKeys(12, 200_000)})
	few := keys{graph.Code: someKeys(15, 300)}
	for b.Loop() {
		s.With(few)
	}
}

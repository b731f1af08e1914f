package embed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas/sections/sectionstest"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// texts are n notes with titles, always the same.
func texts(n int) []string {
	corpus := lexicaltest.New(7)
	out := make([]string, n)
	for i := range out {
		out[i] = corpus.Text(6) + "\n" + corpus.Text(10+i%60)
	}
	return out
}

func trained(n int) *embed.Builtin { return embed.Train(slices.Values(texts(n)), 768) }

func vectorOf(t *testing.T, e embed.Embedder, text string) []float32 {
	t.Helper()
	out, err := e.Embed(t.Context(), []string{text})
	if err != nil || len(out) != 1 {
		t.Fatalf("%d vectors, %v", len(out), err)
	}
	return out[0]
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func alike(t *testing.T, e embed.Embedder, a, b string) float64 {
	t.Helper()
	return dot(vectorOf(t, e, a), vectorOf(t, e, b))
}

func TestNearerInMeaning(t *testing.T) {
	t.Parallel()
	e := trained(500)
	for _, c := range []struct{ text, near, far string }{
		{"retry policy of the handler", "retries policies handlers", "layout of memory"},
		{"configuration", "config", "quorum"},
		{"reconciliation", "reconcile", "recursion"},
		{"most tokens", "maxTokens", "layout of memory"},
		{"http server timeout", "HTTPServerTimeout", "server of files"},
		{"embedding", "embeding", "bedrock"},
		{"Größe", "Dateigröße", "Zeile"},
		{"配置文件", "文件配置", "测试结果"},
	} {
		near, far := alike(t, e, c.text, c.near), alike(t, e, c.text, c.far)
		if near < far+0.1 {
			t.Errorf("%q is like %q by %.3f, and like %q by %.3f", c.text, c.near, near, c.far, far)
		}
	}
	if s := alike(t, e, "maxTokens", "max_tokens"); s < 0.999 {
		t.Errorf("one identifier in two styles: %.3f", s)
	}
	if s := alike(t, e, "quorum", "zebra"); math.Abs(s) > 0.15 {
		t.Errorf("words without anything in common: %.3f", s)
	}
}

func TestTitleCountsMore(t *testing.T) {
	t.Parallel()
	e := trained(500)
	title, body := alike(t, e, "quorum lease", "quorum lease\nwidget paint"), alike(t, e, "quorum lease", "widget paint\nquorum lease")
	if title < body+0.1 {
		t.Errorf("%.3f in the title, %.3f in the body", title, body)
	}
}

// TestRareWordsCountMore: a text is nearer to that with which it shares a rare word.
func TestRareWordsCountMore(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 400 {
		all = append(all, fmt.Sprintf("common text number%d", i))
	}
	e := embed.Train(slices.Values(append(all, "common quorum")), 4096)
	rare, frequent := alike(t, e, "quorum common", "quorum"), alike(t, e, "quorum common", "common")
	if rare < frequent+0.1 {
		t.Errorf("%.3f for the rare word, %.3f for the frequent one", rare, frequent)
	}
}

func TestTextHasOneTitle(t *testing.T) {
	t.Parallel()
	if got := embed.Text("two\nlines", "of\nbody"); got != "two lines\nof\nbody" {
		t.Errorf("got %q", got)
	}
}

func TestLengthIsOne(t *testing.T) {
	t.Parallel()
	for _, dimensions := range []int{1, 2, 3, 100, 768, embed.MaxDimensions} {
		e := embed.Train(slices.Values(texts(50)), dimensions)
		for _, text := range append(texts(20), "x", "\nonly a body", "title\n", strings.Repeat("a", 5000), "\xff\xfe\x00", "日") {
			v := vectorOf(t, e, text)
			if length := math.Sqrt(dot(v, v)); len(v) != dimensions || math.Abs(length-1) > 1e-5 {
				t.Errorf("%d dimensions, %.20q: %d numbers of length %v", dimensions, text, len(v), length)
			}
		}
	}
}

func TestTextsThatSayNothing(t *testing.T) {
	t.Parallel()
	e := trained(50)
	for _, text := range []string{"", " \n\t", "the and of", "…!?", "\n\n"} {
		if v := vectorOf(t, e, text); !slices.Equal(v, embed.Nothing(768)) {
			t.Errorf("%q has the vector %v…", text, v[:3])
		}
	}
}

// TestLongTextsAreCut: they take no more than maxText, in sums too.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	e := embed.Train(slices.Values(texts(10)), 1) // all in one component
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 4*embed.MaxText {
		fmt.Fprintf(&b, "w%x ", random.Uint64())
	}
	long := b.String()
	if a, b := vectorOf(t, e, long), vectorOf(t, e, long[:embed.MaxText]); !slices.Equal(a, b) {
		t.Error("what comes after maxText counts")
	}
	e = trained(10)
	if s := alike(t, e, strings.Repeat("quorum ", 1<<20), "quorum"); s < 0.98 {
		t.Errorf("a word, and a million of it: %.3f", s)
	}
}

// TestSameEverywhere: the order of the texts and the processors do not matter, nor does the machine. GOARCH=386, and
// GOAMD64=v3, which fuses floating-point operations, give the same digest.
func TestSameEverywhere(t *testing.T) {
	all := texts(700)
	want := embed.Train(slices.Values(all), 768)
	vectors, err := want.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors := range 4 {
		runtime.GOMAXPROCS(processors + 1)
		learners := make([]*embed.Learner, processors+1)
		for i := range learners {
			learners[i] = embed.NewLearner()
		}
		shuffled := slices.Clone(all)
		rand.New(rand.NewPCG(uint64(processors), 0)).Shuffle(len(all), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		for i, text := range shuffled {
			learners[i%len(learners)].Add(nil, text, 1)
		}
		got := embed.Learned(768, learners...)
		if !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) || got.Model() != want.Model() {
			t.Errorf("%d learners and another order: other statistics", processors+1)
		}
		again, err := got.Embed(t.Context(), all)
		if err != nil || !slices.EqualFunc(again, vectors, slices.Equal) {
			t.Errorf("%d processors: other vectors, %v", processors+1, err)
		}
	}
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(want.Model())
	for _, v := range vectors {
		_ = binary.Write(&h, binary.LittleEndian, v)
	}
	const golden = 0xf564ff60ecd4f2f
	if h.Sum64() != golden {
		t.Errorf("digest %#x, want %#x; a change of the vectors needs another version of the format", h.Sum64(), uint64(golden))
	}
}

// TestFeatures: what a learner hands out makes the vectors that the texts make.
func TestFeatures(t *testing.T) {
	t.Parallel()
	all := append(texts(100), "", "only a title", "\nonly a body", "the same\nthe same", strings.Repeat("again and ", 9000))
	l := embed.NewLearner()
	var data []byte
	for _, text := range all {
		data = l.Add(data, text, 1)
	}
	e := embed.Learned(100, l)
	rest := data
	for _, text := range all {
		v := make([]float32, 100)
		var err error
		if rest, err = e.EmbedFeatures(rest, v); err != nil || !slices.Equal(v, vectorOf(t, e, text)) {
			t.Fatalf("%.20q: another vector of its features, %v", text, err)
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	first := len(l.Add(nil, all[0], 1))
	for n := range first {
		if _, err := e.EmbedFeatures(data[:n], make([]float32, 100)); err == nil {
			t.Errorf("%d of %d bytes are features", n, first)
		}
	}
}

// TestEqualTextsAreCounted: once for all times that they occur.
func TestEqualTextsAreCounted(t *testing.T) {
	t.Parallel()
	each, once := embed.NewLearner(), embed.NewLearner()
	for i, text := range texts(50) {
		for range i%3 + 1 {
			each.Add(nil, text, 1)
		}
		once.Add(nil, text, i%3+1)
	}
	if a, b := embed.Learned(768, each), embed.Learned(768, once); a.Model() != b.Model() {
		t.Errorf("the models are %s and %s", a.Model(), b.Model())
	}
}

func TestModelSaysWhatChangesVectors(t *testing.T) {
	t.Parallel()
	all := texts(100)
	a := embed.Train(slices.Values(all), 768)
	for name, b := range map[string]*embed.Builtin{
		"dimensions": embed.Train(slices.Values(all), 767),
		"texts":      embed.Train(slices.Values(all[1:]), 768),
		"none":       embed.Train(slices.Values(all[:0]), 768),
	} {
		if a.Model() == b.Model() {
			t.Errorf("another %s: the same model %s", name, a.Model())
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	a := trained(100)
	data := a.AppendTo([]byte("before"))[len("before"):]
	b, err := embed.Open(data)
	if err != nil || b.Model() != a.Model() || b.Dimensions() != 768 {
		t.Fatal(err, b)
	}
	for _, text := range texts(20) {
		if !slices.Equal(vectorOf(t, a, text), vectorOf(t, b, text)) {
			t.Errorf("%q: another vector after Open", text)
		}
	}
	for at := 0; at < len(data); at += 1 + at/40 {
		damaged := slices.Clone(data)
		damaged[at] ^= 0x10
		if _, err := embed.Open(damaged); !errors.Is(err, embed.ErrDamaged) {
			t.Fatalf("byte %d is another: %v", at, err)
		}
	}
	for _, n := range []int{0, 1, 64, len(data) - 1} {
		if _, err := embed.Open(data[:n]); !errors.Is(err, embed.ErrDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := embed.Open(append(slices.Clone(data), 0)); !errors.Is(err, embed.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

// FuzzOpen: what opens embeds, whatever is in it.
func FuzzOpen(f *testing.F) {
	good := trained(20).AppendTo(nil)
	f.Add(8, []byte{0, 3}, "text\nbody")
	f.Add(8, []byte{0, 0, 0, 0}, "text")
	f.Add(8, []byte{255, 255, 255, 255}, "text")
	f.Add(64, bytes.Repeat([]byte{0}, 1<<18), "text of zeros")
	f.Add(64, bytes.Repeat([]byte{255}, 1<<18), "text")
	f.Add(-1, []byte("short"), "text")
	f.Fuzz(func(t *testing.T, at int, change []byte, text string) {
		data := change
		if at >= 0 && at < len(good) {
			data = slices.Clone(good)
			copy(data[at:], change)
			sectionstest.Reseal(data)
		}
		e, err := embed.Open(data)
		if err != nil {
			if !errors.Is(err, embed.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		v := vectorOf(t, e, text)
		if length := math.Sqrt(dot(v, v)); len(v) != e.Dimensions() || math.Abs(length-1) > 1e-4 {
			t.Errorf("%q: %d numbers of length %v", text, len(v), length)
		}
	})
}

func TestEmbedManyAtOnce(t *testing.T) {
	t.Parallel()
	e, all := trained(200), texts(200)
	want, err := e.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := e.Embed(context.Background(), all)
			if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
				t.Error("other vectors", err)
			}
		})
	}
	group.Wait()
}

func TestEmbedIsCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := trained(10).Embed(ctx, texts(10)); out != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%d vectors, %v", len(out), err)
	}
	if out, err := trained(10).Embed(t.Context(), nil); len(out) != 0 || err != nil {
		t.Errorf("no texts: %d vectors, %v", len(out), err)
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{nil, {0, 0}, {1, nan}, {inf, 1}, {-inf}} {
		if err := embed.Unit(slices.Clone(v)); err == nil {
			t.Errorf("%v has a direction", v)
		}
	}
	for _, v := range [][]float32{{3, 4}, {3e38, 4e38 / 2, 0}, {1e-45, 0}, {-1e-30, 1e-30}} {
		if err := embed.Unit(v); err != nil || math.Abs(math.Sqrt(dot(v, v))-1) > 1e-6 {
			t.Errorf("%v, %v", v, err)
		}
	}
}

func TestLog2(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		b := 1 + random.Uint64N(1<<20)
		a := b + random.Uint64N(1<<(1+random.IntN(39)))
		got, want := float64(embed.Log2(a, b))/65536, math.Log2(float64(a)/float64(b))
		if got > want+1e-9 || got < want-3e-5 {
			t.Fatalf("log2 of %d/%d: %v, want %v", a, b, got, want)
		}
	}
	for count, got := range embed.CountWeights {
		want := 0.0
		if count > 0 {
			want = 64 * (1 + math.Log(float64(count)))
		}
		if math.Abs(float64(got)-want) > 0.51 {
			t.Errorf("weight of %d: %d, want %.1f", count, got, want)
		}
	}
}

func TestRarity(t *testing.T) {
	t.Parallel()
	for _, docs := range []uint64{0, 1, 2, 100, 34_000, 1 << 32} {
		last := embed.Rarity(docs, 0)
		if last != 255 {
			t.Errorf("what none of %d has weighs %d", docs, last)
		}
		for df := uint64(1); df <= docs; df += 1 + df/7 {
			is := embed.Rarity(docs, df)
			want := 255 * math.Pow(math.Log1p(float64(docs)/(float64(df)+0.5))/math.Log1p(2*float64(docs)), 0.25)
			if is > last || is == 0 || math.Abs(float64(is)-want) > 0.6 {
				t.Fatalf("%d of %d: %d after %d, want %.1f", df, docs, is, last, want)
			}
			last = is
		}
	}
}

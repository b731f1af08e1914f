package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAsYAMLIsThatOfKubernetes: what is written is what the library of Kubernetes makes of the same JSON, which takes it
// for YAML and reads it as such, at twice the cost.
func TestAsYAMLIsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		checkYAML(t, value(r, 4))
		checkYAML(t, map[string]any{"of": value(r, 0), "src/b9.go": value(r, 0), "src/b10": []any{prose(r), value(r, 0)}, "texts": prose(r)})
	}
	for _, v := range []any{
		nil, true, 0, -1, math.MaxInt64, math.MinInt64, uint64(math.MaxUint64), 0.1, 1e21, -1e-7, 1e300, "", " ", "~", "null", "yes",
		"0x1F", "0o17", "1_000", "1:30", "2026-02-27", "2026-02-27T10:00:00Z", "- a", "a: b", "a #b", "'", `"`, "\\", "a\nb\n", "\n",
		"tab\there", "trailing ", strings.Repeat("long words in a line ", 20), "ünï – 日本 👍", []any{}, map[string]any{}, json.RawMessage("1e999"), json.RawMessage("123456789012345678901"), json.RawMessage("-0"),
		map[string]any{"a10": 1, "a9": 2, "1": 3, "true": 4, "": 5},
	} {
		checkYAML(t, v)
	}
}

func checkYAML(t *testing.T, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.JSONToYAML(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := asYAML(string(raw)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s, %v; want\n%s", raw, got, err, want)
	}
}

// prose is a text of words and signs, most of them nothing that YAML means something by.
func prose(r *rand.Rand) string {
	words := make([]string, 1+r.IntN(30))
	for i := range words {
		words[i] = strings.Repeat("ab", 1+r.IntN(8))
		if r.IntN(20) == 0 {
			words[i] += []string{"", ".", ":", " #", "\n", "\n\n", " ", "'", "\u2028", "é"}[r.IntN(10)] + word(r)
		}
	}
	return strings.Join(words, " ")
}

// TestQuickYAMLWritesWhatIsFrequent: a capture is written by the quick writer, also one with decisions of several lines,
// quotes and letters of any alphabet.
func TestQuickYAMLWritesWhatIsFrequent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("readers close their rows before a pool ends, ", 5)
	for _, text := range []string{
		"short", "yes", "12", "", "`go test`: fails", long, "`rows`: " + long, "- " + long, "it's " + long + "and: more", "3 times " + long,
		"état – 日本 " + long, "```go\n  x := 1\n\ny\n", long + "end\n" + long + "end", "ends \"so\"",
	} {
		v := map[string]any{"spec": map[string]any{"issue": 7, "ok": true, "none": []any{}, "entries": []any{
			map[string]any{"content": text, "digests": map[string]any{"src/b10.go": "sha256:0", "src/b9.go": text}}, text,
		}}}
		checkYAML(t, v)
		var decoded any
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		if _, ok := quickYAML(decoded); !ok {
			t.Errorf("%q is left to the library", text)
		}
	}
}

// value is any value, nested at most so deep.
func value(r *rand.Rand, depth int) any {
	switch n := r.IntN(12); {
	case n < 2 && depth > 0:
		out := map[string]any{}
		for range r.IntN(5) {
			out[word(r)] = value(r, depth-1)
		}
		return out
	case n < 4 && depth > 0:
		out := make([]any, r.IntN(5))
		for i := range out {
			out[i] = value(r, depth-1)
		}
		return out
	case n == 4:
		return r.IntN(2) == 0
	case n == 5:
		return int64(r.Uint64()) >> r.IntN(64)
	case n == 6:
		return r.Uint64() >> r.IntN(64)
	case n == 7:
		return math.Ldexp(r.Float64()-0.5, r.IntN(400)-200)
	}
	words := make([]string, r.IntN(30))
	for i := range words {
		words[i] = word(r)
	}
	return strings.Join(words, []string{" ", "\n", ": ", ", "}[r.IntN(4)])
}

func word(r *rand.Rand) string {
	signs := strings.Split("a|b|Z|0|1|9|.|-|:|#|'|\"|\\|/|{|[|&|*|!|%|@|`|?|>|||~|_|e|E|+|x| |ü|日|👍|<<|=", "|")
	n := r.IntN(5)
	if n == 0 {
		return fmt.Sprint(r.IntN(100_000))
	}
	var b strings.Builder
	for range n {
		b.WriteString(signs[r.IntN(len(signs))])
	}
	return b.String()
}

func BenchmarkYAML(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	entries := make([]any, 50)
	for i := range entries {
		words := make([]string, 50)
		for k := range words {
			words[k] = word(r)
		}
		entries[i] = map[string]any{"category": "decision", "content": strings.Join(words, " "), "summary": strings.Join(words[:10], " ")}
	}
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := YAML(&out, entries); err != nil {
			b.Fatal(err)
		}
	}
}

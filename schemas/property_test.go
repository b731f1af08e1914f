package schemas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/schemas"
)

// asJSON wraps a canonical spec into a JSON document.
func asJSON(o *schemas.Object) []byte {
	return []byte(`{"apiVersion":"` + schemas.APIVersion + `","kind":"` + o.Kind + `","metadata":{"name":"` + o.Name +
		`"},"spec":` + string(o.Canonical()) + `}`)
}

// stable fails unless decoding what an object says of itself yields the same object.
func stable(t *testing.T, d *schemas.Decoder, path string, o *schemas.Object) {
	t.Helper()
	json := strings.TrimSuffix(path, filepath.Ext(path)) + ".json"
	if path == schemas.SettingsPath {
		json = path // JSON is YAML
	}
	again := d.Decode(json, asJSON(o))
	if again.Object == nil {
		t.Fatalf("%s: the canonical form is refused: %v\n%s", path, again.Problems, o.Canonical())
	}
	if again.Object.Digest != o.Digest || string(again.Object.Canonical()) != string(o.Canonical()) {
		t.Fatalf("%s: the canonical form changes from\n%s to\n%s", path, o.Canonical(), again.Object.Canonical())
	}
	if !reflect.DeepEqual(again.Object.Spec(), o.Spec()) {
		t.Fatalf("%s: the typed spec changes", path)
	}
}

// TestCanonicalIsStable: decode, canonical, decode is a fixed point, for every good file of the examples and corpus.
func TestCanonicalIsStable(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	good := 0
	eachInput(t, func(path string, src []byte) {
		if out := d.Decode(path, src); out.Object != nil {
			stable(t, d, path, out.Object)
			good++
		}
	})
	if good < 60 {
		t.Errorf("only %d good files: the test says little", good)
	}
}

// eachInput visits the examples and every input of the corpus.
func eachInput(t testing.TB, visit func(path string, src []byte)) {
	t.Helper()
	for _, k := range all {
		path, src := example(t, k.Singular()+".yaml")
		visit(path, src)
	}
	path, src := example(t, "workflow.toml")
	visit(path, src)
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(a.Files); i += 2 {
			visit("specs/"+a.Files[i].Name, a.Files[i].Data)
		}
	}
}

// TestFormatsAgree: the same object has the same digest as YAML, as JSON and, for workflows, as TOML.
func TestFormatsAgree(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	for _, k := range all {
		path, src := example(t, k.Singular()+".yaml")
		js, err := yaml.YAMLToJSON(src)
		if err != nil {
			t.Fatal(err)
		}
		one := d.Decode(path, src)
		if path != schemas.SettingsPath {
			path = "specs/x.json"
		}
		two := d.Decode(path, js)
		if one.Object == nil || two.Object == nil || one.Object.Digest != two.Object.Digest {
			t.Errorf("%s: YAML %v, JSON %v", k.Name, one.Problems, two.Problems)
		}
	}
	_, y := example(t, "workflow.yaml")
	_, m := example(t, "workflow.toml")
	one, two := d.Decode("specs/w.yaml", y), d.Decode("specs/w.toml", m)
	if one.Object == nil || two.Object == nil || one.Object.Digest != two.Object.Digest || one.Ref != two.Ref {
		t.Errorf("workflow: YAML %v, TOML %v", one.Problems, two.Problems)
	}
}

// TestDefaultIsIdempotent: defaulting twice is defaulting once, and neither changes the digest.
func TestDefaultIsIdempotent(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	for _, k := range all {
		path, src := example(t, k.Singular()+".yaml")
		o := d.Decode(path, src).Object
		once, err := json.Marshal(o.Spec())
		if err != nil {
			t.Fatal(err)
		}
		o.Spec().Default()
		twice, err := json.Marshal(o.Spec())
		if err != nil || string(once) != string(twice) {
			t.Errorf("%s: %v\nonce  %s\ntwice %s", k.Name, err, once, twice)
		}
		again := schemas.NewObject(k, o.Metadata, o.Path, o.Digest, o.Canonical(), o.Refs)
		if !reflect.DeepEqual(again.Spec(), o.Spec()) {
			t.Errorf("%s: an object from a cache differs from a decoded one", k.Name)
		}
	}
}

// placed fails unless every problem names the file and, except for files as a whole, a place inside it.
func placed(t *testing.T, path string, src []byte, ps []schemas.Problem) {
	t.Helper()
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	for _, p := range ps {
		switch {
		case p.Path != path || p.Message == "" || p.Code == "" || p.Severity == "":
			t.Fatalf("incomplete problem %+v", p)
		case p.Code == "too-large" || p.Code == "format":
			continue
		case p.Line < 1 || p.Line > len(lines) || p.Column < 1:
			t.Fatalf("%v: outside of the file, which has %d lines", p, len(lines))
		case p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 && p.Code != "encoding":
			t.Fatalf("%v: the line has %d characters", p, utf8.RuneCountInString(lines[p.Line-1]))
		}
		for _, r := range p.Related {
			if r.Path != path || r.Line > len(lines) {
				t.Fatalf("%v: related place %v is outside of the file", p, r)
			}
		}
	}
}

func TestEveryProblemHasAPlace(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	eachInput(t, func(path string, src []byte) { placed(t, path, src, d.Decode(path, src).Problems) })
}

// TestDamagedFiles cuts every example at every byte, and changes bytes at random: nothing may panic, and what is
// accepted must be stable.
func TestDamagedFiles(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	rnd := rand.New(rand.NewPCG(3, 4))
	const hostile = "\x00\t\n :-#'\"{}[]&*!|>%@x0\xff"
	visit := func(path string, src []byte) {
		out := d.Decode(path, src)
		placed(t, path, src, out.Problems)
		if out.Object != nil {
			stable(t, d, path, out.Object)
		}
	}
	for _, name := range []string{"dag.yaml", "agent.yaml", "workflow.toml", "settings.yaml"} {
		path, src := example(t, name)
		for i := range src {
			if i%7 == 0 || !testing.Short() {
				visit(path, src[:i])
			}
			changed := append([]byte(nil), src...)
			changed[rnd.IntN(len(changed))] = hostile[rnd.IntN(len(hostile))]
			visit(path, changed)
		}
	}
}

func FuzzDecode(f *testing.F) {
	d := schemas.NewDecoder(all, 0)
	exts := []string{".yaml", ".json", ".toml"}
	eachInput(f, func(path string, src []byte) {
		for i, e := range exts {
			if strings.HasSuffix(path, e) && len(src) < 4096 {
				f.Add(uint8(i), src)
			}
		}
	})
	f.Fuzz(func(t *testing.T, ext uint8, src []byte) {
		path := "specs/x" + exts[int(ext)%len(exts)]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out := d.Decode(path, src)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Fatalf("%d bytes allocated for %d", n, len(src))
		}
		placed(t, path, src, out.Problems)
		if out.Object == nil && len(out.Problems) == 0 {
			t.Fatal("neither an object nor a problem")
		}
		if out.Object != nil {
			stable(t, d, path, out.Object)
		}
		for _, p := range out.Problems {
			if strings.Count(p.Format(), "\n") < 1 || !utf8.ValidString(p.Format()) {
				t.Fatalf("bad rendering %q", p.Format())
			}
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"0", "10m", "1h30m", "1.5h", ".5s", "-1s", "+1s", "1e3s", "366h", "8785h", "1us", "1µs", "", " 1s"} {
		f.Add(s)
	}
	shape := regexp.MustCompile(durationPattern(f))
	f.Fuzz(func(t *testing.T, s string) {
		v, err := schemas.ParseDuration(s)
		if err != nil {
			return
		}
		if !shape.MatchString(s) {
			t.Fatalf("%q is accepted, and the published pattern refuses it", s)
		}
		if v < 0 || v > schemas.MaxDuration {
			t.Fatalf("%q is %v, out of range", s, v)
		}
		if again, err := schemas.ParseDuration(v.String()); err != nil || again != v {
			t.Fatalf("%q: %v prints as %q, which reads as %v, %v", s, v.Std(), v, again, err)
		}
	})
}

// durationPattern takes the pattern from the published schema.
func durationPattern(t testing.TB) string {
	t.Helper()
	var doc any
	if err := json.Unmarshal(schemas.Schema(schemas.AgentKind), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"properties", "spec", "properties", "runner", "properties", "command", "properties",
		"timeout", "pattern"} {
		m, ok := doc.(map[string]any)
		if !ok {
			t.Fatal(errors.New("the schema has changed its form"))
		}
		doc = m[name]
	}
	return doc.(string)
}

// TestWorstCases holds files of the largest size to bounded memory (I19); each is of a sort that has hurt some parser.
func TestWorstCases(t *testing.T) {
	fill := func(prefix, unit, suffix string) string {
		n := (schemas.DefaultFileSize - len(prefix) - len(suffix)) / len(unit)
		return prefix + strings.Repeat(unit, n) + suffix
	}
	cases := map[string]string{
		"one long text":        fill(session+"  description: ", "x", "\n"),
		"brackets":             fill(session+"  metadata: ", "[", ""),
		"braces":               fill(session+"  metadata: ", "{a: ", ""),
		"dashes":               fill(session+"  metadata: ", "- ", ""),
		"question marks":       fill(session+"  metadata:\n    ", "? ", ""),
		"many fields":          fill(session+"  metadata: {", "a,", "}"),
		"as many as may be":    session + "  metadata: {l: [" + strings.Repeat("a,", 99_000) + strings.Repeat("a", 800_000) + "]}\n",
		"many problems":        fill(session, "  x: y\n", ""),
		"long lines, problems": fill(session+"  metadata: {", "*a: 1, ", "}\n"),
		"comments":             fill("", "# c\n", session),
		"blank lines":          fill("", "\n", session),
		"documents":            fill(session, "---\n", ""),
		"quotes":               fill(session+"  title: \"", "\\\"", ""),
		"ampersands":           fill(session+"  title: ", "&a ", ""),
	}
	counted := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	cases["wrong types"] = session + "  env: {" + counted(80_000, "A%d: 1,") + "}\n"
	cases["wrong nodes"] = strings.Replace(strings.Replace(session, "Session", "DAG", 1), "title: a", "session: a", 1) +
		"  nodes: [" + counted(8_000, "{name: N%d, script: 1, run: 2, needs: 3},") + "]\n"
	cases["columns"] = session + "  metadata: {u: ü, l: [" + counted(98_000, "a%d,") + "]}\n"
	cases["toml columns"] = "title = \"ü\"\nl = [" + counted(98_000, "%d,") + "]\n"
	cases["toml keys"] = counted(49_000, "k%d.a = 1\n")
	cases["json"] = "[" + counted(98_000, "%d,") + "0]"
	d := schemas.NewDecoder(all, 0)
	for name, src := range cases {
		t.Run(name, func(t *testing.T) {
			ext, _, _ := strings.Cut(name, " ")
			if ext != "toml" && ext != "json" {
				ext = "yaml"
			}
			var out schemas.Decoded
			if peak := peakMemory(func() { out = d.Decode("specs/x."+ext, []byte(src)) }); peak > 64<<20 {
				t.Errorf("%d MiB live at once", peak>>20)
			}
			if out.Object == nil && len(out.Problems) == 0 {
				t.Error("neither an object nor a problem")
			}
		})
	}
}

// peakMemory is the most that was live after any garbage collection during work, which it makes frequent.
func peakMemory(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	live := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	before := live()
	peak := before
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	for {
		select {
		case <-done:
			return peak - before
		default:
			peak = max(peak, live())
			runtime.Gosched()
		}
	}
}

// TestEveryKindHasItsFiles says what to add when a kind is new.
func TestEveryKindHasItsFiles(t *testing.T) {
	for _, k := range all {
		for _, name := range []string{
			"../examples/" + k.Singular() + ".yaml", k.Singular() + ".schema.json", "../docs/kinds/" + k.Singular() + ".md",
		} {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("kind %s: %v", k.Name, err)
			}
		}
	}
}

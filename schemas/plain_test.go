package schemas

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// samples are the examples and everything in testdata, as seeds.
func samples(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"../examples/*.yaml", "testdata/plain/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = string(b)
		}
	}
	return out
}

// samePlain fails unless the quick reader, where it accepts a text, yields what the full parser yields.
func samePlain(t *testing.T, text string) (accepted bool) {
	t.Helper()
	s := newSource("x.yaml")
	if !s.gate([]byte(text), DefaultFileSize) {
		return false
	}
	quick := plainYAML(string(s.text), nil)
	if quick == nil {
		return false
	}
	full := s.fullYAML()
	if len(s.problems) > 0 {
		t.Fatalf("the full parser refuses what the quick reader takes: %v\n%s", s.problems[0], text)
	}
	normalise(quick)
	normalise(full)
	if !reflect.DeepEqual(quick, full) {
		t.Fatalf("the readers differ on\n%s\nquick %s\nfull  %s\n%s", text, quick.canonical(nil, nil),
			full.canonical(nil, nil), firstDifference(quick, full))
	}
	return true
}

// normalise makes empty and missing slices equal.
func normalise(v *value) {
	if len(v.fields) == 0 {
		v.fields = nil
	}
	if len(v.items) == 0 {
		v.items = nil
	}
	for i := range v.fields {
		normalise(v.fields[i].value)
	}
	for _, item := range v.items {
		normalise(item)
	}
}

func firstDifference(a, b *value) string {
	var out []string
	var walk func(path string, a, b *value)
	walk = func(path string, a, b *value) {
		if a.line != b.line || a.col != b.col || a.bare != b.bare || a.form != b.form || a.text != b.text || a.raw != b.raw {
			out = append(out, path)
		}
		for i := range min(len(a.fields), len(b.fields)) {
			if f, g := a.fields[i], b.fields[i]; f.name != g.name || f.line != g.line || f.col != g.col {
				out = append(out, path+"."+f.name+" (key)")
			}
			walk(path+"."+a.fields[i].name, a.fields[i].value, b.fields[i].value)
		}
		for i := range min(len(a.items), len(b.items)) {
			walk(path+"[]", a.items[i], b.items[i])
		}
	}
	walk("", a, b)
	return "differs at " + strings.Join(out, ", ")
}

func TestPlainYAMLReadsTheExamples(t *testing.T) {
	for name, text := range samples(t) {
		if !samePlain(t, text) {
			t.Errorf("%s: left to the full parser", name)
		}
	}
}

func TestPlainYAMLReadsBlockTexts(t *testing.T) {
	for text, want := range map[string]string{
		"a: |\n  x\n":                      "x\n",
		"a: |-\n  x \n":                    "x ",
		"a: |\n  x\n\n    y\n\n\nb: 1\n":   "x\n\n  y\n",
		"a: >\n  x\n":                      "x\n",
		"a: >-\n  x\n  y\nb: 1\n":          "x y",
		"a: >\n  x\n\n  y\n  z\n\n\n  #\n": "x\ny z\n\n#\n",
	} {
		if !samePlain(t, text) {
			t.Errorf("left to the full parser: %q", text)
		} else if got := plainYAML(text, nil).str("a"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPlainYAMLReadsLines(t *testing.T) {
	for text, want := range map[string]string{
		"a: x\n  y\n":                           "x y",
		"a: x  \n  - y: z#\n   'q' # c\nb: 1\n": "",
		"a: x\n  - y\n   'q' # c\nb: 1\n":       "x - y 'q'",
		"a: 1\n  2\n":                           "1 2",
		"b: 1\na:\n  x\n  # y\n":                "",
		"a: x # c\n  y\n":                       "",
		"a: x\n\n  y\n":                         "",
		"a: x\n  y: z\n":                        "",
		"a: 'x: \n  it''s\n  y #'  # c\n":       "x: it's y #",
		"a: 'x\n  '\nb: 1\n":                    "x ",
		"a: 'x\n\n  y'\n":                       "",
		"a: 'x\ny'\n":                           "",
		"a: \"x\n  y\"\n":                       "",
	} {
		quick := plainYAML(text, nil)
		if want == "" {
			if quick != nil {
				t.Errorf("%q: not left to the full parser", text)
			}
			continue
		}
		if !samePlain(t, text) {
			t.Errorf("left to the full parser: %q", text)
		} else if got := quick.str("a"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range samples(f) {
		f.Add(text)
	}
	for _, text := range []string{
		"a: |\n  x\n\n  y\nb: 1\n", "a: >\n  x\n  y\n\n  z\nb: 1\n", "a:\n  - >-\n    x\n   #c\n  - 1\n", "a: |-\n  x\n#c\nb: 2\n", "a:\n- b: 1\n  c: [x, 'it''s', \"q\\n\"]\n- d\n",
		"a: {b: 1, c: {}, d: []}\n", "a: b # c\n# d\nb: ü #\n", "---\na: -p\n", "a: 'x' # y\n", "a:\n- b: x\n    y\n    z\n  c: 'x: y\n    it''s'\n", "a: x:y\nb: -1\nc: 1e3\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4096 {
			samePlain(t, text)
		}
	})
}

// TestPlainYAMLAgrees builds texts of the pieces that matter to a line-based reader, most of them not valid.
func TestPlainYAMLAgrees(t *testing.T) {
	pieces := []string{
		"a: ", "b: ", "key:", "- ", "-", "\n", "\n", "\n  ", "\n    ", "\n ", " ", "# c", " # c", "|", "|-", ">", ">-", "x", "y z", "1",
		"0x1f", "true", "~", "'q'", "'it''s'", `"d"`, `"e\n"`, `"\\"`, "[x, y]", "[", "]", "{a: 1}", "{", "}", ", ", "{}", "[]", ":", "---",
		"ü", "10m", "-1", "*a", "&a", "!t", "?", "http://h/p", "c: d", "--flag", "./...", "@", "'", "x\n  ", "'x\n  ",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	rounds := mutants.Size(2000, 8000, 30_000)
	for range rounds {
		var b strings.Builder
		b.WriteString("a: ")
		for range 1 + rnd.IntN(14) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		if samePlain(t, b.String()) {
			accepted++
		}
	}
	if accepted < rounds/100 {
		t.Errorf("only %d texts of %d were accepted: the test says little", accepted, rounds)
	}
}

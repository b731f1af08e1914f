package memory

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/tokens"
)

func TestCut(t *testing.T) {
	const family = "👩‍👩‍👧‍👦" // 7 characters that are seen as one
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""}, {"short", 5, "short"}, {"shorter", 5, "shor…"}, {"one two three", 13, "one two three"},
		{"aaaaaaaaaaaaaaaaaaa bbbbbbbbbb", 22, "aaaaaaaaaaaaaaaaaaa…"}, {"aaaaaaaaa bbbb", 10, "aaaaaaaaa…"},
		{strings.Repeat(family, 3), 16, family + family + "…"}, {strings.Repeat("é", 9), 5, "éééé…"},
		{"日本語日本語", 4, "日本語…"}, {"a\u0301b\u0301c\u0301", 4, "a\u0301…"},
	} {
		if got := cut(c.text, c.most); got != c.want || utf8.RuneCountInString(got) > c.most && c.text != "" {
			t.Errorf("%q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("one two three 👩‍👩‍👧‍👦 مرحبا", 9)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = 1 + max(most, -most)%3000
		got := cut(text, most)
		if utf8.RuneCountInString(got) > most || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q to %d: %q", text, most, got)
		}
		if kept := strings.TrimSuffix(got, "…"); got != text && !strings.HasPrefix(text, kept) {
			t.Errorf("%q to %d: %q is not its beginning", text, most, got)
		}
		if summary := Summary(text); strings.TrimSpace(text) != "" && summary == "" || tokens.Count(summary) > briefTokens {
			t.Errorf("the summary of %q: %q", text, summary)
		}
	})
}

func TestSummary(t *testing.T) {
	for content, want := range map[string]string{
		"Chose per-issue JSON files. Evaluated SQLite and LevelDB.": "Chose per-issue JSON files.",
		"Done. It works on all of the machines now. And more.":      "Done. It works on all of the machines now.",
		"no sentence, \n just   words":                              "no sentence, just words",
		strings.Repeat("entirely different words again ", 40) + ".": strings.Repeat("entirely different words again ", 11) + "entirely different words…",
	} {
		if got := Summary(content); got != want {
			t.Errorf("%q: %q", content, got)
		}
	}
}

// TestAnchors: only what exists below the root, as specs may name it.
func TestAnchors(t *testing.T) {
	files := []string{"src/a.go", "src/db/adapter.go", "Makefile", "docs/x y.md", ".git/config", "state/memory/manifest.json",
		"README.md", ".github/workflows/ci.yml", "src/\u200db.go", "src", "日本/語.md"}
	exists := func(p string) bool {
		for _, f := range files {
			if f == p {
				return true
			}
		}
		return false
	}
	source := &Source{Exists: exists, StateFolder: "state"}
	for content, want := range map[string][]string{
		"": nil, "Makefile is no path by itself": nil, "see `src/a.go:12:3`, (src/a.go#L10) and \"./src/db/adapter.go\".": {"src/a.go",
			"src/db/adapter.go"},
		"/home/ann/work/app/src/a.go and C:\\work\\app\\src\\db\\adapter.go":    {"src/a.go", "src/db/adapter.go"},
		"../src/a.go /etc/passwd ~/src/a.go https://x.org/src/a.go":             nil,
		".git/config .GIT/config state/memory/manifest.json src/../.git/config": nil,
		"README.md! src/a.go, src//a.go; src/./a.go .github/workflows/ci.yml":   {".github/workflows/ci.yml", "README.md", "src/a.go"},
		"src/\u200db.go": nil, "日本/語.md。": nil, "日本/語.md": {"日本/語.md"}, strings.Repeat("a/", 5000): nil, "x=src/a.go|src/a.go": {"src/a.go"},
	} {
		if got := source.anchors(content); !reflect.DeepEqual(got, want) {
			t.Errorf("%.60q: %q, want %q", content, got, want)
		}
	}
	source.StateFolder = "results"
	files = append(files, "state/tree.go", "results/memory/manifest.json", "resultset.go")
	content, want := "state/tree.go Results/memory/manifest.json results/memory/manifest.json resultset.go", []string{"resultset.go", "state/tree.go"}
	if got := source.anchors(content); !reflect.DeepEqual(got, want) {
		t.Errorf("with another folder of state: %q, want %q", got, want)
	}
	if got := new(Source).anchors("src/a.go"); got != nil {
		t.Errorf("without a tree: %q", got)
	}
}

package lexical_test

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// TestNumbers numbers the terms of texts one after the other, as a build does, and compares them with the texts' terms: of
// pieces that were there before, that are too long to be remembered, that are written in several ways, and of more pieces
// than are kept.
func TestNumbers(t *testing.T) {
	t.Parallel()
	corpus := lexicaltest.New(3)
	var texts []string
	for range 300 {
		texts = append(texts, corpus.Text(40))
	}
	texts = append(texts, "", ".", "a", "-", "x.", "x..", "x-", "it's.", "it's", "its.", "'s", "IDs.", "IDs", "ID.s", "é.", "é",
		"it’s.", "it’s", "naïve Façade.", "cafe\u0301.", "ab\xffcd.", "\xe2\x80", "\xe2\x80 x", "使用Go语言.", "用", "\x00", "a\x00b",
		"the", "The.", "src/db/adapter_test.go", "src/db/adapter_test.go.", "twenty-three-characters", "twenty-four-characters-.",
		"twenty-four-characters-x", strings.Repeat("ab_", 1000), strings.Repeat("word ", 1000)+"end", "end")
	for range 2 {
		for i, got := range lexical.Numbered(texts...) {
			if want := lexical.Terms(texts[i]); !slices.Equal(got, want) {
				t.Errorf("%.40q: %.200q, want %.200q", texts[i], got, want)
			}
		}
		slices.Reverse(texts)
	}
}

// FuzzNumbers checks that a text has the terms that it has alone, whatever was numbered before.
func FuzzNumbers(f *testing.F) {
	f.Add("src/db/adapter.go it's", "src/db/adapter.go. it's. Cafe\u0301")
	f.Add("\xff\u2019s", "使用Go语言 --dry-run\x00x")
	f.Fuzz(func(t *testing.T, before, text string) {
		got := lexical.Numbered(before, text, text)
		for _, got := range got[1:] {
			if want := lexical.Terms(text); !slices.Equal(got, want) {
				t.Fatalf("%q after %q: %q, want %q", text, before, got, want)
			}
		}
	})
}

// TestProcessors builds on several processors: the bytes are the same.
func TestProcessors(t *testing.T) {
	t.Parallel()
	docs := lexicaltest.New(9).Documents(700)
	docs[0], docs[699] = lexical.Document{}, lexical.Document{}
	want := build(t, docs).Bytes()
	for _, processors := range []int{1, 2, 3, 7, 700} {
		index := lexical.BuildOn(docs, processors)
		if err := index.Verify(); err != nil || string(index.Bytes()) != string(want) {
			t.Errorf("%d processors do not make the bytes that one makes: %v", processors, err)
		}
	}
}

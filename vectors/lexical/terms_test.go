package lexical_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/vectors/lexical"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"HTTPServer2":             "http server 2 httpserver2",
		"src/db/adapter_test.go":  "src db adapter test go adaptertest adaptertest.go src/db/adaptertest.go",
		`src\db\x.ts`:             "src db x ts x.ts src/db/x.ts",
		"maxTokens":               "max token maxtoken",
		"max_tokens":              "max token maxtoken",
		"MAX-TOKENS":              "max token maxtoken",
		"--dry-run":               "dry run dryrun",
		"userIDs":                 "user ids userid",
		"parseURLPath":            "pars url path parseurl urlpath parseurlpath",
		"v1.61.1":                 "v 1 61 1 v1 v1.61.1",
		"sha256":                  "sha 256 sha256",
		"Deploy the cache.":       "deploy cach",
		"It's the agents' plan":   "agent plan",
		"don’t":                   "dont",
		"O'Brien's":               "obrien",
		"naïve Façade Ærø ẞ łódź": "naiv facad aero ss lodz",
		"Ὀδυσσεύς άνθρωπος":       "ὀδυσσευσ ανθρωποσ",
		"cafe\u0301":              "caf",
		"ＦＵＬＬ　width":              "full width",
		"#29: std::vector<int>":   "29 std vector int",
		"a@b.example, c++":        "b exampl b.example c",
		"记忆管道":                    "记忆 忆管 管道",
		"用":                       "用",
		"使用Go语言":                  "使用 go 语言",
		"メモリ検索":                   "メモ モリ リ検 検索",
		"기억하다":                    "기억 억하 하다",
		"🚀 deploy 👩‍💻now ✅":       "deploy now",
		"שָׁלוֹם עולם":            "שלום עולם",
		"مَرْحَبًا ـ العـالم":     "مرحبا العالم",
		"\u202eabc\u202c":         "abc",
		"soft\u00adhyphen":        "softhyphen",
		"zero\u200bwidth":         "zero width",
		"one\r\ntwo\r\n":          "one two",
		"ab\xffcd":                "ab cd",
		"हिन्दी":                  "हिन्दी",
		"the and of":              "",
		"":                        "",
		"... -- // __":            "",
		"foo/":                    "foo",
		"../foo.go":               "foo go foo.go",
		"x.y/z":                   "x y z x.y x.y/z",
		"not without no":          "not without no",
	} {
		if got := strings.Join(lexical.Terms(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestStems lists words that are found by each other, and pairs that are not.
func TestStems(t *testing.T) {
	for _, words := range []string{
		"cache caches cached caching", "retry retries retried retrying", "stop stops stopped stopping", "query queries",
		"process processes processed", "box boxes", "fix fixes fixed", "status", "string strings", "class classes",
		"deploy deploys deployed", "file files", "batch batches", "lock locks locking", "speed speeds",
	} {
		first := lexical.Terms(strings.Fields(words)[0])
		for _, w := range strings.Fields(words) {
			if got := lexical.Terms(w); !slices.Equal(got, first) {
				t.Errorf("%s is %q, want %q", w, got, first)
			}
		}
	}
	for _, pair := range []string{"string str", "status statu", "bring br", "need ne", "this thi", "pass pas", "thing th"} {
		a, b, _ := strings.Cut(pair, " ")
		if slices.Equal(lexical.Terms(a), lexical.Terms(b)) {
			t.Errorf("%s is taken for %s", a, b)
		}
	}
}

// TestLongTerms: words without end are cut, compounds without end have only parts, and a line of megabytes takes no
// more than its length.
func TestLongTerms(t *testing.T) {
	for text, want := range map[string]int{
		strings.Repeat("a", 1<<20):          1,
		strings.Repeat("é", 1<<19):          1,
		strings.Repeat("ab_", 1<<18):        1 << 18,
		strings.Repeat("word ", 1<<18):      1 << 18,
		strings.Repeat("记", 1<<18):          1<<18 - 1,
		strings.Repeat("\u0301", 1<<18):     0,
		"x" + strings.Repeat("\u200d", 1e6): 1,
	} {
		terms := lexical.Terms(text)
		if len(terms) != want {
			t.Errorf("%.10q…: %d terms, want %d", text, len(terms), want)
		}
		for _, term := range terms {
			if len(term) > 64 || !utf8.ValidString(term) {
				t.Fatalf("%.10q…: the term %q", text, term)
			}
		}
	}
}

// FuzzTerms checks what holds of every text.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"HTTPServer2 src/db/a_b.go", "it's 记忆 ﬁ", "\xff\xfe a\u0301b", "İI ıi ǅ", "ﷺ Ⅷ ²"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := lexical.Terms(text)
		for _, term := range terms {
			if term == "" || len(term) > 64 || !utf8.ValidString(term) {
				t.Fatalf("%q: the term %q", text, term)
			}
		}
		if again := lexical.Terms(text + "\r\n"); !slices.Equal(terms, again) {
			t.Fatalf("%q: a new line changes %q to %q", text, terms, again)
		}
	})
}

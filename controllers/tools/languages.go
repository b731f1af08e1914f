package tools

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed languages.json
var languagesJSON []byte

// languages is the table of languages, which cmd/reconcile/internal/tools/gen makes of go-enry.
var languages = sync.OnceValue(func() (t struct {
	Extensions map[string][]string `json:"extensions"`
	Filenames  map[string][]string `json:"filenames"`
	Vendored   []string            `json:"vendored"`
	vendored   *regexp.Regexp
	known      map[string]bool
}) {
	if err := json.Unmarshal(languagesJSON, &t); err != nil {
		panic(fmt.Sprintf("table of languages: %v", err)) // a test decodes it
	}
	t.vendored = regexp.MustCompile("(?:" + strings.Join(t.Vendored, ")|(?:") + ")")
	t.known = map[string]bool{}
	for _, tool := range Catalog() {
		for _, l := range tool.Languages {
			t.known[l] = true
		}
	}
	return t
})

// LanguageOf is the language of a file by its name, in the words of the catalogue; "" for none of it.
func LanguageOf(file string) string {
	name := path.Base(file)
	t := languages()
	all := t.Filenames[name]
	for at := 0; len(all) == 0; { // .d.ts before .ts
		i := strings.IndexByte(name[at:], '.')
		if i < 0 {
			return ""
		}
		all = t.Extensions[strings.ToLower(name[at+i:])]
		at += i + 1
	}
	for _, l := range all {
		switch l {
		case "shell":
			l = "bash"
		case "tsx":
			l = "typescript"
		case "hcl":
			l = "terraform"
		}
		if t.known[l] {
			return l
		}
	}
	return ""
}

// Vendored reports whether others wrote a file, by its path, and where it is in testdata.
func Vendored(file string) bool {
	return slices.Contains(strings.Split(path.Dir(file), "/"), "testdata") || languages().vendored.MatchString(file)
}

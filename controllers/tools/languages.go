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

// languages is the table of languages, which cmd/reconcile/internal/tools/gen makes from go-enry.
var languages = sync.OnceValue(func() (t languageTable) {
	if err := json.Unmarshal(languagesJSON, &t); err != nil {
		panic(fmt.Sprintf("table of languages: %v", err)) // a test decodes it
	}
	t.others, t.known, t.configs = map[string]bool{"testdata": true, "CMakeFiles": true}, map[string]bool{}, map[string]bool{}
	t.vendored = regexp.MustCompile("(?:" + strings.Join(t.folderPatterns(), ")|(?:") + ")")
	for _, tool := range Catalog() {
		for _, l := range tool.Languages {
			t.known[l] = true
		}
		for _, entry := range tool.Configs {
			if strings.Contains(entry, ".config.") || strings.HasPrefix(entry, ".") {
				t.configs[entry] = true
			}
		}
	}
	return t
})

type languageTable struct {
	Extensions map[string][]string `json:"extensions"`
	Filenames  map[string][]string `json:"filenames"`
	// Interpreters are the programs that run scripts.
	Interpreters map[string][]string `json:"interpreters"`
	Vendored     []string            `json:"vendored"`
	others       map[string]bool     // names of folders whose files others wrote, and
	vendored     *regexp.Regexp      // the paths of further ones
	known        map[string]bool
	configs      map[string]bool // names of files that configure a tool in its language
}

// folderPatterns returns the patterns that are about folders, and not only about a name, which it puts in others.
func (t *languageTable) folderPatterns() (out []string) {
	name := regexp.MustCompile(`^[\w.-]+$`)
	for _, p := range t.Vendored {
		rest, inAny := strings.CutPrefix(p, "(^|/)")
		rest, isFolder := strings.CutSuffix(rest, "/")
		if plain := strings.ReplaceAll(rest, `\.`, "."); isFolder && inAny && name.MatchString(plain) {
			t.others[plain] = true
		} else if isFolder {
			out = append(out, p)
		}
	}
	return out
}

// LanguageOf is the language of a file by its name, in the words of the catalogue; "" for none of it, or where the name says only that it is one of
// several, as .cgi does. A header counts as one of C.
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
	return t.only(all)
}

// ScriptLanguage is the language of a file without an extension by its first line, in the words of the catalogue; "" for none of it.
func ScriptLanguage(file string, text []byte) string {
	line, is := strings.CutPrefix(string(text), "#!")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
	}
	if !is || len(words) == 0 || path.Ext(file) != "" || LanguageOf(file) != "" {
		return ""
	}
	program, t := path.Base(words[0]), languages()
	if all := t.Interpreters[program]; len(all) > 0 {
		return t.only(all)
	}
	return t.only(t.Interpreters[strings.TrimRight(program, ".0123456789")])
}

// only is the language of some that the catalogue knows; "" for none, or several.
func (t languageTable) only(all []string) string {
	found := ""
	for _, l := range all {
		switch l {
		case "shell":
			l = "bash"
		case "tsx":
			l = "typescript"
		case "hcl":
			l = "terraform"
		}
		switch {
		case !t.known[l] || l == found:
		case found == "":
			found = l
		case found != "c":
			return ""
		}
	}
	return found
}

// Configures reports whether a file, by its name, configures a tool in a programming language, as eslint.config.js does: it makes its project none of that
// language.
func Configures(name string) bool { return languages().configs[name] }

// Vendored reports whether others wrote the files of a folder, by its path, or it is testdata, or what CMake keeps of its own.
func Vendored(folder string) bool {
	t := languages()
	for part := range strings.SplitSeq(folder, "/") {
		if t.others[part] {
			return true
		}
	}
	return t.vendored.MatchString(folder + "/")
}

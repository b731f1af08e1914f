package tools

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// languageTable is what cmd/reconcile/internal/tools/gen knows from go-enry: sorted lines of what is known about a name, the name, and the languages
// of the catalogue. A line takes no time before it is looked up.
//
//go:embed languages.txt
var languageTable string

// The words that begin the lines of languageTable.
const (
	byExtension   = "extension"
	byFilename    = "filename"
	byInterpreter = "interpreter" // a program that runs scripts
	ofOthers      = "folder"      // whose files others wrote
	otherPatterns = "pattern"     // of paths of further ones
)

// lookUp returns what the table says of a name.
func lookUp(about, name string) (says string, ok bool) {
	line := about + "\t" + name + "\t"
	from, to := 0, len(languageTable) // the line begins here, or it is not there
	for from < to {
		middle := (from + to) / 2
		start := 1 + strings.LastIndexByte(languageTable[:middle], '\n')
		end := start + strings.IndexByte(languageTable[start:], '\n')
		switch is := languageTable[start:end]; {
		case strings.HasPrefix(is, line):
			return is[len(line):], true
		case is < line:
			from = end + 1
		default:
			to = start
		}
	}
	return "", false
}

// vendored matches the paths of folders whose files others wrote, and that have another name in each project.
var vendored = sync.OnceValue(func() *regexp.Regexp {
	pattern, _ := lookUp(otherPatterns, "")
	return regexp.MustCompile(pattern)
})

// configs are the names of files that configure a tool in its language.
var configs = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, tool := range Catalog() {
		for _, entry := range tool.Configs {
			if strings.Contains(entry, ".config.") || strings.HasPrefix(entry, ".") {
				names[entry] = true
			}
		}
	}
	return names
})

// LanguageOf is the language of a file by its name, in the words of the catalogue; "" for none of it, or where the name says only that it is one of
// several, as .cgi does. A header counts as one of C.
func LanguageOf(file string) string {
	name := path.Base(file)
	all, ok := lookUp(byFilename, name)
	for at := 0; !ok; { // .d.ts before .ts
		i := strings.IndexByte(name[at:], '.')
		if i < 0 {
			return ""
		}
		all, ok = lookUp(byExtension, strings.ToLower(name[at+i:]))
		at += i + 1
	}
	return only(all)
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
	program := path.Base(words[0])
	all, ok := lookUp(byInterpreter, program)
	if !ok {
		all, _ = lookUp(byInterpreter, strings.TrimRight(program, ".0123456789"))
	}
	return only(all)
}

// only is the language of those that lookUp returned; "" for none, or several, of which the first is not C.
func only(all string) string {
	first, more, _ := strings.Cut(all, ",")
	if more != "" && first != "c" {
		return ""
	}
	return first
}

// Configures reports whether a file, by its name, configures a tool in a programming language, as eslint.config.js does: it makes its project none of that
// language.
func Configures(name string) bool { return configs()[name] }

// Vendored reports whether others wrote the files of a folder, by its path, or it is testdata, or what CMake keeps of its own.
func Vendored(folder string) bool {
	for part := range strings.SplitSeq(folder, "/") {
		if _, is := lookUp(ofOthers, part); is {
			return true
		}
	}
	return vendored().MatchString(folder + "/")
}

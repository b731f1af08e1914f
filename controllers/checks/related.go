package checks

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Selected are the files with tests that are related to a change.
type Selected struct {
	Files []string          `json:"files"`
	Why   map[string]string `json:"why,omitempty"` // by file, in words
}

// Add adds a file, if it is new.
func (s *Selected) Add(file, why string) {
	if _, known := s.Why[file]; known {
		return
	}
	if s.Why == nil {
		s.Why = map[string]string{}
	}
	s.Why[file] = why
	s.Files = append(s.Files, file)
}

// RelatedTests chooses among files with tests those that are related to changed files: that changed themselves, that are in the folder of a
// package that changed or that uses one (packages has those folders, and what each uses), or whose text mentions the name of a changed file; a name of
// one letter counts in lines that import. A file that represents its folder, as index.js, has the name of the folder, and in the folder its own, too.
// read returns the text of a file; packages is nil for languages whose files import files.
func RelatedTests(changed, tests []string, packages map[string]string, read func(file string) []byte) *Selected {
	s := &Selected{}
	for _, t := range tests {
		if slices.Contains(changed, t) {
			s.Add(t, "it changed")
		}
	}
	if packages != nil {
		for _, t := range tests {
			if uses, ok := packages[Folder(t)]; ok {
				s.Add(t, uses)
			}
		}
		slices.Sort(s.Files)
		return s
	}
	var words, files, fronts []string
	for _, c := range changed {
		if slices.Contains(tests, c) {
			continue
		}
		if w := moduleName(c); w != "" {
			words, files = append(words, w), append(files, c)
		}
		if isFront(c) {
			fronts = append(fronts, c)
		}
	}
	v := newVocabulary(words)
	for _, t := range tests {
		if _, known := s.Why[t]; known || len(words)+len(fronts) == 0 {
			continue
		}
		if i := slices.IndexFunc(words, func(w string) bool { return !isLetter(w) && strings.Contains(path.Base(t), w) }); i >= 0 {
			s.Add(t, "it is named for "+files[i])
			continue
		}
		text := read(t)
		if i, ok := v.find(text); ok {
			s.Add(t, "it mentions "+files[i])
		} else if i := slices.IndexFunc(fronts, func(f string) bool { return importsFront(text, t, f) }); i >= 0 {
			s.Add(t, "it imports "+fronts[i])
		}
	}
	slices.Sort(s.Files)
	return s
}

// isFront reports whether a file represents its folder, so that other files import it by the name of the folder.
func isFront(file string) bool {
	return slices.Contains([]string{"index", "__init__", "mod", "lib", "main"}, stem(file))
}

// importsFront reports whether a test that is in or below the folder of such a file is named for it, or imports it: by the name of the file, or by
// dots alone.
func importsFront(text []byte, test, file string) bool {
	if dir := frontFolder(file); dir != "." && !strings.HasPrefix(test, dir+"/") {
		return false
	}
	name := stem(file)
	if strings.Contains(path.Base(test), name) {
		return true
	}
	for line := range bytes.Lines(text) {
		words := bytes.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`();,", r) })
		if imports(line) && (mentions(line, name) || slices.ContainsFunc(words, isDots)) {
			return true
		}
	}
	return false
}

// isDots reports whether a word in an import is the path of the folder of the file, or of one above it.
func isDots(word []byte) bool { return word[0] == '.' && len(bytes.Trim(word, "./")) == 0 }

// frontFolder is the folder that a file represents: its own, or the one above src.
func frontFolder(file string) string {
	dir := path.Dir(file)
	if path.Base(dir) == "src" {
		dir = path.Dir(dir)
	}
	return dir
}

// stem is the name of a file without its extensions.
func stem(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".")
	return name
}

// Folder is the folder of a file or folder, both below the root of a project, which is "".
func Folder(file string) string {
	if dir := path.Dir(file); dir != "." {
		return dir
	}
	return ""
}

// moduleName is the name by which other files import a file: without its extension, and that of the folder for a file that represents it.
func moduleName(file string) string {
	name := stem(file)
	if isFront(file) {
		name = path.Base(frontFolder(file))
	}
	if strings.Trim(name, "./") == "" {
		return ""
	}
	return name
}

// vocabulary finds some words in texts, each text in one pass.
type vocabulary struct {
	words map[string]int // by number
	first [256]bool      // the first bytes of words
	odd   []string       // words with other characters, such as a dash; they are searched for one by one
	oddAt []int
	short []string // words of one letter, which mean a file only where a line imports it
	at    []int
}

func newVocabulary(words []string) *vocabulary {
	v := &vocabulary{words: map[string]int{}}
	for i, w := range words {
		if isLetter(w) {
			v.short, v.at = append(v.short, w), append(v.at, i)
			continue
		}
		if strings.ContainsFunc(w, func(r rune) bool { return !inWord(r) }) {
			v.odd, v.oddAt = append(v.odd, w), append(v.oddAt, i)
			continue
		}
		if _, known := v.words[w]; !known {
			v.words[w] = i
			v.first[w[0]] = true
		}
	}
	return v
}

// find returns the number of a changed file whose name the text of a test has, not as part of a longer word.
func (v *vocabulary) find(text []byte) (int, bool) {
	for i := 0; i < len(text); {
		if !wordByte[text[i]] {
			i++
			continue
		}
		start := i
		for i < len(text) && wordByte[text[i]] {
			i++
		}
		if v.first[text[start]] {
			if n, ok := v.words[string(text[start:i])]; ok {
				return n, true
			}
		}
	}
	for n, w := range v.odd {
		if mentions(text, w) {
			return v.oddAt[n], true
		}
	}
	for n, w := range v.short {
		for line := range bytes.Lines(text) {
			if imports(line) && mentions(line, w) {
				return v.at[n], true
			}
		}
	}
	return 0, false
}

// isLetter reports whether a name has one letter only.
func isLetter(name string) bool { return utf8.RuneCountInString(name) == 1 }

// imports reports whether a line of a test imports something, in one of the usual languages.
func imports(line []byte) bool {
	return slices.ContainsFunc([]string{"import", "from", "require", "require_relative", "use", "mod", "include", "source", "load"}, func(w string) bool { return mentions(line, w) })
}

// mentions reports whether the text of a test has the name of a changed file, not as part of a longer word.
func mentions(text []byte, word string) bool {
	for from := 0; ; from++ {
		i := bytes.Index(text[from:], []byte(word))
		if i < 0 {
			return false
		}
		from += i
		if end := from + len(word); (from == 0 || !wordByte[text[from-1]]) && (end == len(text) || !wordByte[text[end]]) {
			return true
		}
	}
}

// wordByte has the bytes of words: ASCII letters, digits, _ and $, and all of other characters.
var wordByte = func() (is [256]bool) {
	for b := range is {
		is[b] = b >= utf8.RuneSelf || inWord(rune(b))
	}
	return is
}()

func inWord(r rune) bool {
	return r == '_' || r == '$' || r >= utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsDigit(r)
}

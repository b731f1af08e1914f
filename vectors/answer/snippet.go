package answer

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
)

const (
	// snippetLines is how many lines of a result are shown.
	snippetLines = 3
	// SnippetWidth is how many columns of a line are shown.
	SnippetWidth = 120
	// heldFiles is how many bytes of files are kept for other results in them.
	heldFiles = 32 << 20
)

// Snippets selects lines of the results.
type Snippets struct {
	Terms []string                          // of the query
	Read  func(path string) ([]byte, error) // reads a file of the tree, up to the indexed length

	files map[string][]string // lines by path
	held  int                 // bytes of them
}

// passage is a line of a text, or a piece of a long one.
type passage struct {
	line  int // in the file, from 1; 0: the text is in no file
	text  string
	score int // how many of the words it has
}

// of picks the passages of a node that have most of the terms, in their order, with their lines, and the terms that the
// node has.
func (s *Snippets) of(n *graph.Node) (texts []string, lines []int, matched []string) {
	found := map[string]bool{}
	var all []passage
	for _, p := range s.passages(n) {
		if strings.TrimSpace(p.text) == "" {
			continue
		}
		terms := lexical.Terms(p.text)
		for _, t := range s.Terms {
			if slices.Contains(terms, t) {
				found[t] = true
				p.score++
			}
		}
		all = append(all, p)
	}
	for _, p := range bestPassage(all) {
		texts = append(texts, strings.ReplaceAll(strings.TrimRight(p.text, " \t\r"), "\t", "  "))
		if p.line > 0 {
			lines = append(lines, p.line)
		}
	}
	return outdented(texts), lines, slices.Sorted(maps.Keys(found))
}

// bestPassage returns the passages of the highest scores, in their order: those without any of the terms only where none has one.
func bestPassage(all []passage) []passage {
	slices.SortStableFunc(all, func(a, b passage) int { return b.score - a.score })
	all = all[:min(len(all), snippetLines)]
	if len(all) > 0 && all[0].score > 0 {
		all = slices.DeleteFunc(all, func(p passage) bool { return p.score == 0 })
	}
	slices.SortStableFunc(all, func(a, b passage) int { return a.line - b.line })
	return all
}

// outdented removes from the lines of a snippet the space that all begin with.
func outdented(lines []string) []string {
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); least < 0 || n < least {
			least = n
		}
	}
	for i := range lines {
		lines[i] = lines[i][least:]
	}
	return lines
}

// passages are the lines of a node in its file, as much as is indexed of a text; without a file, its name.
func (s *Snippets) passages(n *graph.Node) []passage {
	name := []passage{{text: n.Name}}
	if n.Line == 0 || n.Path == "" {
		return name
	}
	lines := s.file(n.Path)
	from, to := n.Line-1, min(n.End, len(lines))
	if n.End < n.Line {
		to = len(lines)
	}
	if from >= to {
		return name
	}
	if n.Type.Domain() == graph.Code {
		from = commentedFrom(lines, from)
	}
	var out []passage
	for left := graph.MaxBody; from < to && left > 0; from++ {
		left -= len(lines[from]) + 1
		for _, piece := range pieces(lines[from]) {
			out = append(out, passage{line: from + 1, text: piece})
		}
	}
	return out
}

// file returns the lines of a file; none if it cannot be read.
func (s *Snippets) file(p string) []string {
	if lines, ok := s.files[p]; ok {
		return lines
	}
	data, err := s.Read(p)
	if err != nil {
		return nil
	}
	if s.held += len(data); s.files == nil || s.held > heldFiles {
		s.files, s.held = map[string][]string{}, len(data)
	}
	s.files[p] = strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	return s.files[p]
}

// pieces splits a line that is too long to be shown, between words where it can be, and marks where something is missing.
func pieces(line string) []string {
	const room, mark = SnippetWidth - 2, "…"
	if utf8.RuneCountInString(line) <= SnippetWidth {
		return []string{line}
	}
	var out []string
	begin, word, runes := 0, 0, 0 // of the piece: where it begins, where its last word does, and how long it is
	parted := false
	for i, r := range line {
		if parted {
			word = i
		}
		if runes == room {
			cut := i
			if word-begin > (i-begin)/2 {
				cut = word
			}
			out = append(out, line[begin:cut]+mark)
			begin, word, runes = cut, cut, utf8.RuneCountInString(line[cut:i])
		}
		runes++
		parted = !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}
	out = append(out, line[begin:])
	for i := 1; i < len(out); i++ {
		out[i] = mark + out[i]
	}
	return out
}

// comments are what lines of comments begin with.
var comments = []string{"//", "/*", "*", "#", "--"}

// commentedFrom is the line, from 0, at which the comment begins that ends just above a line.
func commentedFrom(lines []string, at int) int {
	isComment := func(line string) bool {
		line = strings.TrimSpace(line)
		return slices.ContainsFunc(comments, func(mark string) bool { return strings.HasPrefix(line, mark) })
	}
	for at > 0 && isComment(lines[at-1]) {
		at--
	}
	return at
}

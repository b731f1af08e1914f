package source

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// windowLines is the number of lines in one node of a file of unknown type.
const windowLines = 60

// Plain makes the graph part of a plain file of lines, whose type is not known: the file, and windows of lines if it is
// longer than one.
func Plain(f File) graph.Part {
	b := &graph.PartBuilder{}
	lines := linesOf(f.Text)
	first := string(bytes.Join(lines[:min(len(lines), windowLines)], nil))
	id := b.Add(fileItem(f, len(lines), first))
	for from := windowLines; from < len(lines); from += windowLines {
		to := min(from+windowLines, len(lines))
		b.Edge(id, graph.Contains, b.Add(graph.Item{
			Node: graph.Node{ID: fmt.Sprintf("%s#L%d", f.Path, from+1), Type: graph.File,
				Name: fmt.Sprintf("%s, lines %d to %d", path.Base(f.Path), from+1, to),
				Path: f.Path, Line: from + 1, End: to, Labels: languageOf(f.Path)},
			Title: f.Path, Body: string(bytes.Join(lines[from:to], nil)),
		}))
	}
	return b.Part
}

// linesOf are the lines of a text with their ends: at least one.
func linesOf(text []byte) [][]byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if n := len(lines); n > 1 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

func languageOf(p string) []string {
	ext := strings.ToLower(strings.TrimPrefix(path.Ext(p), "."))
	if ext == "" || len(ext) > 12 {
		return nil
	}
	return []string{"lang=" + ext}
}

// HasSymbols reports whether ctags knows symbols of a file's language, by the extension of its path, such as .c, .java,
// .py or .ts.
func HasSymbols(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".cs", ".java", ".js", ".jsx", ".mjs", ".kt", ".lua", ".php", ".pl", ".py",
		".rb", ".rs", ".scala", ".sh", ".swift", ".ts", ".tsx":
		return true
	}
	return false
}

// maxTags is how many symbols of one file are taken.
const maxTags = 10_000

// Tagged makes the graph part of a file from its ctags tags: the file, and a node for each symbol. Without any it is
// Plain.
func Tagged(f File, tags []Tag) graph.Part {
	lines := linesOf(f.Text)
	tags = slices.DeleteFunc(slices.Clone(tags), func(t Tag) bool {
		return t.Line < 1 || t.Line > len(lines) || t.unnamed() || t.kind(lines[t.Line-1]) == 0
	})
	slices.SortStableFunc(tags, func(a, b Tag) int { return a.Line - b.Line })
	if tags = settlePatterns(tags[:min(len(tags), maxTags)], lines); len(tags) == 0 {
		return Plain(f)
	}
	b := &graph.PartBuilder{}
	var names []string
	items, told := make([]graph.Item, len(tags)), make([]bool, len(lines))
	for i, t := range tags {
		names = append(names, t.symbol())
		from, end := commentOf(t, lines), endOf(tags, i, lines)
		items[i] = taggedItem(f, t, lines, from, end)
		for n := bytes.Count([]byte(items[i].Body), []byte("\n")); from < end && n >= 0; from, n = from+1, n-1 {
			told[from] = true
		}
	}
	id := b.Add(fileItem(f, len(lines), graph.Clip(untoldOf(lines, told)+strings.Join(names, " "), graph.MaxBody)))
	types := map[string]string{}
	for i, t := range tags {
		it := items[i]
		to := b.Add(it)
		b.Edge(id, graph.Defines, to)
		if it.Type == graph.Type {
			types[t.symbol()] = to
		} else if of := types[t.Scope]; of != "" {
			b.Edge(of, graph.Contains, to)
		}
	}
	return b.Part
}

// endOf is the last line of a symbol: as ctags says, else before the next one, and of a value its first one.
func endOf(tags []Tag, i int, lines [][]byte) int {
	t := tags[i]
	if t.End >= t.Line {
		return min(t.End, len(lines))
	}
	if is := t.kind(lines[t.Line-1]); is == graph.Constant || is == graph.Variable {
		return t.Line
	}
	for _, next := range tags[i+1:] {
		if next.Line > t.Line {
			return next.Line - 1
		}
	}
	return len(lines)
}

// untoldOf are the lines that are in the text of no symbol.
func untoldOf(lines [][]byte, told []bool) string {
	var b strings.Builder
	for i, line := range lines {
		if !told[i] && len(bytes.TrimSpace(line)) > 0 {
			b.Write(line)
		}
	}
	return b.String()
}

// commentOf is where the comment above a symbol begins: the lines before it that are not blank and no code of others.
func commentOf(t Tag, lines [][]byte) int {
	from := t.Line - 1
	for from > 0 && t.Line-from < 40 && isComment(lines[from-1]) {
		from--
	}
	return from
}

// taggedItem takes the comment above a symbol with it.
func taggedItem(f File, t Tag, lines [][]byte, from, end int) graph.Item {
	return graph.Item{
		Node: graph.Node{ID: f.Path + ":" + t.symbol(), Type: t.kind(lines[t.Line-1]), Name: t.symbol(), Path: f.Path, Line: t.Line,
			End: end, Labels: languageOf(f.Path)},
		Title: t.symbol() + squeeze(t.Signature) + " " + t.Kind,
		Body:  graph.Clip(string(bytes.Join(lines[from:end], nil)), maxCode),
	}
}

func isComment(line []byte) bool {
	s := strings.TrimSpace(string(line))
	for _, mark := range []string{"//", "#", "*", "/*", "--", ";", "'''", `"""`, "@"} {
		if strings.HasPrefix(s, mark) {
			return true
		}
	}
	return false
}

func lineAt(text []byte, at int) (l codeLine) {
	for i := at; i < len(text); i++ {
		c := text[i]
		switch c {
		case '\n':
			l.next = i + 1
			return l
		case ' ', '\t', '\r':
			continue
		case '/':
			if skipped := bareComment(text[i:]); skipped > 0 {
				i += skipped - 1
				continue
			}
		case '"', '\'', '`':
			i += bareQuoted(text[i:]) - 1
		}
		l.last, l.lastAt = c, i
	}
	l.next = len(text)
	return l
}

func lineStarts(text []byte) []int {
	out := []int{0}
	for i, c := range text {
		if c == '\n' && i+1 < len(text) {
			out = append(out, i+1)
		}
	}
	return out
}

package eval

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/source"
)

// leastTerms is how many different terms a question must have. What says less, as "closes the file", asks for nothing
// in particular.
const leastTerms = 3

// Function is a function or method, as it is asked for.
type Function struct {
	// ID is the symbol without its file, as in [source.Alias]: net/http/:Client.Do. Declarations for several systems
	// share it; each is a right answer.
	ID string
	// Question is the first sentence of the doc comment without the function's name; "" if it is not asked for.
	Question string
	// Named is the unchanged sentence.
	Named string
}

// Cut takes the first sentences out of the doc comments of a Go file's functions and methods, and lists these. A file that
// cannot be parsed stays as it is, and has none.
func Cut(f source.File) (source.File, []Function) {
	fset := token.NewFileSet()
	file, _ := parser.ParseFile(fset, f.Path, f.Text, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil || file.Name == nil {
		return f, nil
	}
	offset := func(p token.Pos) int { return min(fset.PositionFor(p, false).Offset, len(f.Text)) }
	var functions []Function
	var text []byte
	at := 0
	for _, d := range file.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, rest := sentence(d.Doc.Text())
		functions = append(functions, function(source.Folder(f.Path), file.Name.Name, d, first))
		if first == "" {
			continue
		}
		if from := offset(d.Doc.Pos()); from >= at {
			text = append(append(text, f.Text[at:from]...), comment(rest)...)
			at = max(from, offset(d.Doc.End()))
		}
	}
	return source.File{Path: f.Path, Text: append(text, f.Text[at:]...)}, functions
}

// comment makes a comment of a text.
func comment(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return "// " + strings.ReplaceAll(text, "\n", "\n// ")
}

// function is one of them, whose comment begins with a sentence.
func function(folder, pkg string, f *ast.FuncDecl, sentence string) Function {
	names := []string{f.Name.Name}
	if r := source.Receiver(f); r != "" {
		names = []string{r, f.Name.Name}
	}
	local := strings.Join(names, ".")
	out := Function{ID: folder + ":" + local}
	exported := !slices.ContainsFunc(names, func(n string) bool { return !ast.IsExported(n) })
	if question := without(sentence, f.Name.Name, local, pkg+"."+local); exported && terms(question) >= leastTerms {
		out.Question, out.Named = question, sentence
	}
	return out
}

// sentence parts a doc comment into its first sentence and the rest. A sentence ends with its paragraph, or at a full
// stop that does not end an abbreviation or an initial.
func sentence(doc string) (first, rest string) {
	paragraph, after, _ := strings.Cut(doc, "\n\n")
	words := strings.Fields(paragraph)
	for i, w := range words {
		if ends(w) {
			return strings.Join(words[:i+1], " "), strings.Join(words[i+1:], " ") + "\n" + after
		}
	}
	return strings.Join(words, " "), after
}

// ends reports whether a word is the last of a sentence: it has one full stop, at its end, and is not an initial.
func ends(w string) bool {
	before, after, found := strings.Cut(w, ".")
	initial := len(before) == 1 && unicode.IsUpper(rune(before[0]))
	return found && after == "" && before != "" && !initial && before != "vs"
}

// without drops the words of a sentence that are one of these names.
func without(sentence string, names ...string) string {
	bare := func(w string) string {
		return strings.TrimFunc(strings.TrimSuffix(w, "'s"), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	}
	words := slices.DeleteFunc(strings.Fields(sentence), func(w string) bool { return slices.Contains(names, bare(w)) })
	return strings.Join(words, " ")
}

// terms is how many different terms a text has.
func terms(text string) int {
	all := lexical.Terms(text)
	slices.Sort(all)
	return len(slices.Compact(all))
}

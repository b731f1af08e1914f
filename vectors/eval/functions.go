package eval

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/source"
)

// maxCode is how many bytes of the code of a function are indexed.
const maxCode = 2048

// leastTerms is how many different terms a question must have. What says less, as "closes the file", asks for nothing
// in particular.
const leastTerms = 3

// Function is a function or method, as it is indexed and asked for.
type Function struct {
	// ID is the folder, the type and the name: net/http.Client.Do. What a package has once for each system has it in
	// common; each of these is a right answer.
	ID string
	// Title is the package, the type, the name, and the signature.
	Title string
	// Body is what the doc comment says after its first sentence, and the code.
	Body string
	// Question is the first sentence of the doc comment without the function's name; "" if it is not asked for.
	Question string
	// Named is the same sentence as it stands there.
	Named string
}

// Functions lists the functions and methods of a Go file. name is its path below the root of the module, with slashes.
// What of the file cannot be parsed is left out.
func Functions(name string, src []byte) []Function {
	fset := token.NewFileSet()
	file, _ := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil || file.Name == nil {
		return nil
	}
	text := func(from, to token.Pos) string {
		at, end := fset.Position(from).Offset, fset.Position(to).Offset
		if from < 1 || at > end || end > len(src) {
			return ""
		}
		return string(src[at:end])
	}
	var out []Function
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			out = append(out, function(path.Dir(name), file.Name.Name, f, text))
		}
	}
	return out
}

// function is one of them. text is the source between two positions.
func function(dir, pkg string, f *ast.FuncDecl, text func(from, to token.Pos) string) Function {
	names := []string{f.Name.Name}
	if r := source.Receiver(f); r != "" {
		names = []string{r, f.Name.Name}
	}
	local := strings.Join(names, ".")
	code := ""
	if f.Body != nil {
		code = graph.Clip(text(f.Body.Pos(), f.Body.End()), maxCode)
	}
	first, rest := sentence(f.Doc.Text())
	out := Function{ID: dir + "." + local, Title: pkg + "." + local + " " + text(f.Type.Params.Pos(), f.Type.End()),
		Body: strings.TrimSpace(rest + "\n" + code)}
	exported := !slices.ContainsFunc(names, func(n string) bool { return !ast.IsExported(n) })
	if question := without(first, f.Name.Name, local, pkg+"."+local); exported && terms(question) >= leastTerms {
		out.Question, out.Named = question, first
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

// ends reports whether a word is the last of a sentence: it has one full stop, at its end, and is no initial.
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

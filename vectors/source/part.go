package source

import (
	"path"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/vectors/graph"
)

// File is a text of the work tree.
type File struct {
	Path string // slash path below the root
	Text []byte
	// Declares says that only what the file declares is asked for, see [ParseGo].
	Declares bool
}

// Folder returns the id of the folder of a file: its directory and a slash.
func Folder(file string) string {
	if dir := path.Dir(file); dir != "." {
		return dir + "/"
	}
	return "./"
}

// Alias returns the alias of a symbol's id, which has the folder instead of the file: "state/:Tree.Entry" for
// "state/tree.go:Tree.Entry"; ok is false for ids of anything else.
func Alias(id string) (alias string, ok bool) {
	file, symbol, found := strings.Cut(id, ":")
	if !found || symbol == "" || file == "import" || strings.HasSuffix(file, "/") || strings.ContainsRune(symbol, '~') {
		return "", false
	}
	return Folder(file) + ":" + symbol, true
}

// IsAlias reports whether an id is an alias, which names a folder and a symbol, but no file.
func IsAlias(id string) bool {
	folder, symbol, found := strings.Cut(id, ":")
	return found && symbol != "" && strings.HasSuffix(folder, "/")
}

// squeeze puts a text on one line.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// clipped is the begin of some code.
func clipped(code []byte) string {
	return graph.Clip(string(code[:min(len(code), maxCode+utf8.UTFMax)]), maxCode)
}

func fileItem(f File, lines int, body string) graph.Item {
	return graph.Item{
		Node: graph.Node{ID: f.Path, Type: graph.File, Name: path.Base(f.Path), Path: f.Path, Line: 1, End: lines,
			Labels: languageOf(f.Path)},
		Title: f.Path, Body: body,
	}
}

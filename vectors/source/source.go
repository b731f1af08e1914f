// Package source makes nodes, edges and texts of the files of a work tree: of Go with go/parser and go/types, of
// Markdown by section, of other languages by the symbols that ctags found, and of all other files by windows of lines.
// It reads no files; the result is a pure function of the given texts. Files with syntax errors are indexed as far as
// they can be parsed.
//
// # Names
//
// A file is named by its path, a symbol by path and name ("state/tree.go:Tree.Entry"), a folder by its path with a
// slash ("state/", the root is "./"), a section by path and slug ("docs/git.md#sharing-a-branch"), a window by path and
// first line ("notes.txt#L61"), a third-party package by its import path ("import:fmt"). Of several with the same name,
// as functions called init, the second gets "~2".
//
// An edge to a symbol of another folder names it without the file, which is not known here: "state/:Tree.Entry". The
// package that joins the parts resolves it, see [Alias].
//
// # Calls
//
// go/types checks each folder separately, with stubs for all imports: calls are exact for functions and methods of the
// folder, and for functions of other folders of the same modules. Methods of imported types are not resolved. The
// result for a file depends on its text and on its context: the declarations reachable from the names in it. So after
// an edit only those files of a folder are parsed again whose text or context changed.
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

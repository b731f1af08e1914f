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

// Package source makes nodes, edges and texts of the files of a work tree: of Go with go/parser and go/types, of Markdown
// by section, of other languages by the symbols that ctags found, and of what nobody knows by windows of lines. Texts are
// handed in; nothing is read, and what comes out depends on nothing else. What cannot be parsed is indexed as far as it
// can be.
//
// # Names
//
// A file is named by its path, a symbol by path and name ("state/tree.go:Tree.Entry"), a folder by its path with a slash
// ("state/", the root is "./"), a section by path and slug ("docs/git.md#sharing-a-branch"), a window by path and first
// line ("notes.txt#L61"), a package of somebody else by its import path ("import:fmt"). Of several that would have one
// name, as functions called init, the second gets "~2".
//
// An edge to a symbol of another folder names it without the file, which cannot be known from here: "state/:Tree.Entry".
// Whoever joins the parts looks that up, see [Alias].
//
// # Calls
//
// go/types checks each folder by itself, with all that it imports stubbed: what a folder calls is right for its own
// functions and methods, and for functions of other folders of the same modules. Methods of types from elsewhere are not
// told. What comes of a file depends on its text and on its context: the declarations that can be reached from the names
// in it. So after an edit only those files of a folder are made anew that have another text or another context.
package source

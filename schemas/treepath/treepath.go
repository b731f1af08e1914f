// Package treepath decides by the text of a path whether it is a file of the user's, of git's, of reconcile's own, or outside
// of the tree. It counts as git's what any file system takes for .git, so that a tree means the same wherever it is checked out:
// Windows folds case, drops dots and spaces at the end, has streams after a colon and short names (git~1); macOS folds case and
// drops some characters that are not seen. What is a link, only the file system knows.
package treepath

import "strings"

// Owner says whose a path is.
type Owner uint8

const (
	User    Owner = iota // any other file below the root, and the root itself
	Git                  // .git and what is in it
	Local                // .reconcile and what is in it
	Outside              // no path below the root
)

// Names that lead to the folders of git and of reconcile, in the form of [fold].
const (
	gitName, gitShort     = ".git", "git~1"
	localName, localShort = ".reconcile", "reconc~1"
)

// Of returns whose a path with slashes below the root is. Only paths in their shortest form are below it, without backslashes,
// drive letters and NUL characters. What is git's within .reconcile is git's.
func Of(p string) Owner {
	if strings.ContainsAny(p, "\x00\\") || len(p) > 1 && p[1] == ':' {
		return Outside
	}
	if p == "." {
		return User
	}
	owner := User
	for name := range strings.SplitSeq(p, "/") {
		switch o := OfName(name); {
		case o == Outside:
			return Outside
		case o == Git, owner == User:
			owner = o
		}
	}
	return owner
}

// OfName returns whose the file or folder of a name is, in whatever folder. A name that is empty, or that some system drops as
// a whole, such as "." and "..", is outside.
func OfName(name string) Owner {
	if plain(name) {
		return User
	}
	switch fold(name) {
	case gitName, gitShort:
		return Git
	case localName, localShort:
		return Local
	case "":
		return Outside
	}
	return User
}

// plain reports whether a name is certainly the user's: no spelling of the others begins with its first character. It answers
// for nearly every name.
func plain(name string) bool {
	if name == "" {
		return false
	}
	c := name[0]
	return c > ' ' && c < 0x80 && c != '.' && c != 'g' && c != 'G' && c != 'r' && c != 'R' && c != ':'
}

// Within reports whether p is dir or below it, where dir is the state folder or another one that has an owner: spelled
// as any file system takes it.
func Within(p, dir string) bool {
	names, dirs := strings.Split(p, "/"), strings.Split(dir, "/")
	if len(names) < len(dirs) {
		return false
	}
	for i, name := range dirs {
		if names[i] != name && fold(names[i]) != fold(name) {
			return false
		}
	}
	return true
}

// fold returns the form in which names that some file system takes for one are equal.
func fold(name string) string {
	name, _, _ = strings.Cut(strings.Map(lower, name), ":")
	return strings.TrimRight(name, ". ")
}

// lower folds case and drops what the file system of macOS ignores.
func lower(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	case r < 0x80:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return []rune(strings.ToLower(string(r)))[0]
}

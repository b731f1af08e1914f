// Package treepath classifies paths of a tree by their text: files of the user, of git, of reconcile itself, or outside
// of the tree. All names that any file system treats as .git count as git's, so that a tree means the same wherever it is
// checked out: Windows folds case, drops trailing dots and spaces, has streams after a colon and short names (git~1);
// macOS folds case and drops some invisible characters. The package does not see links; only the file system knows them.
package treepath

import "strings"

// Owner is the owner of a path.
type Owner uint8

const (
	User    Owner = iota // any other file below the root, and the root itself
	Git                  // .git and the paths below it
	Local                // .reconcile and the paths below it
	Outside              // not a path below the root
)

// The names of the folders of git and of reconcile, in the form of [fold].
const (
	gitName, gitShort     = ".git", "git~1"
	localName, localShort = ".reconcile", "reconc~1"
)

// Of returns the owner of a slash path below the root. Only paths in their shortest form are below the root, without
// backslashes, drive letters and NUL characters. A path of git within .reconcile is git's.
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

// OfName returns the owner of a single name of a file or folder: Git or Local for the names of their folders, else User. It
// is the same in any folder. A name that is empty, or that some system ignores, such as "." and "..", is outside.
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

// plain reports quickly that a name is the user's: no spelling of the other names begins with its first character. It is
// true for nearly every name.
func plain(name string) bool {
	if name == "" {
		return false
	}
	c := name[0]
	return c > ' ' && c < 0x80 && c != '.' && c != 'g' && c != 'G' && c != 'r' && c != 'R' && c != ':'
}

// Below reports whether the slash path p is the folder dir or below it, as both are written. All is below the root, ".".
func Below(p, dir string) bool {
	return dir == "." || p == dir || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// Within reports whether the path p is the folder dir or below it, with the names folded. dir is the state folder or another
// folder with an owner; spellings that a file system treats as equal are equal.
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

// fold returns a canonical form: names that some file system treats as equal have the same form.
func fold(name string) string {
	name, _, _ = strings.Cut(strings.Map(lower, name), ":")
	return strings.TrimRight(name, ". ")
}

// lower folds case and drops the characters that the file system of macOS ignores.
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

package source

import (
	"path"
	"strconv"
	"strings"
)

// Module is a Go module of the work tree.
type Module struct {
	Path string // as imports begin; "" for the standard library, whose folders are its import paths
	Dir  string // slash path of its folder, "" for the root
}

// ParseModule parses the module path and directory from a go.mod file; ok is false if the file names no module.
func ParseModule(f File) (m Module, ok bool) {
	name := modulePath(string(f.Text))
	if name == "" {
		return Module{}, false
	}
	if name == "std" {
		name = ""
	}
	dir := path.Dir(f.Path)
	if dir == "." {
		dir = ""
	}
	return Module{name, dir}, true
}

// Modules are the Go modules of a work tree, in any order.
type Modules []Module

// Folder is the id of the folder that an import path names, if it is one of the modules'. The longest module path
// counts.
func (m Modules) Folder(importPath string) (id string, ok bool) {
	best := -1
	for i := range m {
		if _, in := m[i].below(importPath); in && (best < 0 || len(m[i].Path) > len(m[best].Path)) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	rest, _ := m[best].below(importPath)
	return Folder(path.Join(m[best].Dir, rest, "file")), true
}

func (m *Module) below(importPath string) (rest string, ok bool) {
	if m.Path == "" {
		first, _, _ := strings.Cut(importPath, "/")
		return importPath, !strings.Contains(first, ".")
	}
	rest, ok = strings.CutPrefix(importPath, m.Path)
	return strings.TrimPrefix(rest, "/"), ok && (rest == "" || rest[0] == '/')
}

// modulePath returns the path in the module directive of a go.mod, "" if it has none.
func modulePath(text string) string {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if len(words) != 2 || words[0] != "module" {
			continue
		}
		if name, err := strconv.Unquote(words[1]); err == nil {
			return name
		}
		return words[1]
	}
	return ""
}

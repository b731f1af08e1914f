package repotest

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossary = "docs/glossary.md"

// qualified is an identifier with its package, and maybe its type: state.Tree.Since.
var qualified = regexp.MustCompile(`^[a-z]+\.[A-Z]\w*(\.[A-Z]\w*)?$`)

// TestLinksOfTheGlossary checks that each path and identifier on the page exists.
func TestLinksOfTheGlossary(t *testing.T) {
	declared, n := exported(t), 0
	for _, m := range span.FindAllStringSubmatch(read(t, glossary), -1) {
		n++
		switch name := m[1]; {
		case qualified.MatchString(name):
			if !declared[name] {
				t.Errorf("%s names %s, which is not declared", glossary, name)
			}
		case !pathLike.MatchString(name) || !present(t, name):
			t.Errorf("%s names %s, which is neither a path nor an identifier of the tree", glossary, name)
		}
	}
	if n < 50 {
		t.Errorf("only %d names found", n)
	}
}

// TestGlossaryIsSorted checks that the tables are sorted, name each word once, and have three columns.
func TestGlossaryIsSorted(t *testing.T) {
	seen := map[string]bool{}
	for _, section := range strings.Split(read(t, glossary), "\n## ")[1:] {
		title, rows, _ := strings.Cut(section, "|---|---|---|\n")
		var words []string
		for row := range strings.Lines(rows) {
			cells := strings.Split(strings.Trim(row, "| \n"), " | ")
			if len(cells) != 3 {
				t.Errorf("%q has %d cells", row, len(cells))
				continue
			}
			word := strings.ToLower(cells[0])
			if seen[word] {
				t.Errorf("%s is listed twice", cells[0])
			}
			seen[word] = true
			words = append(words, word)
		}
		if len(words) == 0 || !slices.IsSorted(words) {
			t.Errorf("the table of %q is empty or not sorted: %q", strings.TrimSpace(strings.Split(title, "\n")[0]), words)
		}
	}
}

// exported returns the exported identifiers of the project: package.Name, and package.Type.Member for methods and fields.
func exported(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, s := range sources(t) {
		prefix := s.Name.Name + "."
		for _, d := range s.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[prefix+d.Name.Name] = true
				} else {
					names[prefix+receiver(d)+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(names, prefix, spec)
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*"), "[")
	return name
}

// addSpec adds the names of a declaration, and the fields and methods of a type.
func addSpec(names map[string]bool, prefix string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			names[prefix+id.Name] = true
		}
	case *ast.TypeSpec:
		names[prefix+spec.Name.Name] = true
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, f := range members.List {
			for _, id := range f.Names {
				names[prefix+spec.Name.Name+"."+id.Name] = true
			}
		}
	}
}

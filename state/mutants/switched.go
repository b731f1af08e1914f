package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// active is the variable of a switched package that holds the number of the fault to show, from the environment variable underTest.
const active = "activeMutant"

// switched collects the faults of one suite that can be in one program: the function of each fault is there twice, as it is and with
// the fault, and begins by choosing.
type switched struct {
	files    map[string]*switchedFile // by path
	packages map[string]string        // the names of packages, by folder
}

// switchedFile is a file with changes that do not overlap.
type switchedFile struct {
	source  []byte
	inserts map[int]string // by offset
	copies  strings.Builder
}

// add adds the fault with the number n, and reports whether it could: the fault must lie in the body of a function.
func (s *switched) add(m Mutant, n int) (bool, error) {
	src, err := os.ReadFile(m[1])
	if err != nil {
		return false, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, m[1], src, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	at := bytes.Index(src, []byte(m[2]))
	f := around(set, parsed, at, at+len(m[2]))
	if f == nil {
		return false, nil
	}
	file := s.file(m[1], src, parsed.Name.Name)
	c := function{set: set, source: src, decl: f, name: fmt.Sprintf("%s_mutant%d", f.Name.Name, n)}
	call := c.call()
	for offset, text := range c.names {
		file.inserts[offset] = text // the same for all faults of the function
	}
	file.inserts[c.offset(f.Body.Lbrace)+1] += fmt.Sprintf(" if %s == \"%d\" { %s };", active, n, call)
	fmt.Fprintf(&file.copies, "\n%s\n", c.withFault(m))
	return true, nil
}

func (s *switched) file(path string, src []byte, pkg string) *switchedFile {
	f := s.files[path]
	if f == nil {
		f = &switchedFile{source: src, inserts: map[int]string{}}
		s.files[path] = f
		s.packages[filepath.Dir(path)] = pkg
	}
	return f
}

// around returns the function whose body encloses the bytes from one offset to another; or nil.
func around(set *token.FileSet, file *ast.File, from, to int) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && set.Position(f.Body.Lbrace).Offset < from && to <= set.Position(f.Body.Rbrace).Offset {
			return f
		}
	}
	return nil
}

// contents returns the changed files and the added ones, by path.
func (s *switched) contents() map[string]string {
	texts := map[string]string{}
	for path, f := range s.files {
		var b strings.Builder
		done := 0
		for _, offset := range sortedKeys(f.inserts) {
			b.Write(f.source[done:offset])
			b.WriteString(f.inserts[offset])
			done = offset
		}
		b.Write(f.source[done:])
		texts[path] = b.String() + f.copies.String()
	}
	for dir, pkg := range s.packages {
		texts[filepath.Join(dir, "active_mutant.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", pkg, active, underTest)
	}
	return texts
}

func sortedKeys(m map[int]string) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// function is a function that gets a copy.
type function struct {
	set    *token.FileSet
	source []byte
	decl   *ast.FuncDecl
	name   string         // of the copy
	names  map[int]string // texts that give a name to each receiver and parameter, by offset
}

func (c *function) offset(p token.Pos) int { return c.set.Position(p).Offset }

// call returns the statement that calls the copy, and sets c.names.
func (c *function) call() string {
	c.names = map[int]string{}
	callee := c.name
	if r := c.decl.Recv; r != nil {
		callee = c.named(r.List[0])[0] + "." + callee
	} else if p := c.decl.Type.TypeParams; p != nil {
		var types []string
		for _, f := range p.List {
			for _, n := range f.Names {
				types = append(types, n.Name)
			}
		}
		callee += "[" + strings.Join(types, ", ") + "]"
	}
	var args []string
	for _, f := range c.decl.Type.Params.List {
		args = append(args, c.named(f)...)
		if _, ok := f.Type.(*ast.Ellipsis); ok {
			args[len(args)-1] += "..."
		}
	}
	call := callee + "(" + strings.Join(args, ", ") + ")"
	if c.decl.Type.Results != nil {
		return "return " + call
	}
	return call + "; return"
}

// named returns the names of a field, and gives one to unnamed fields.
func (c *function) named(f *ast.Field) []string {
	if len(f.Names) == 0 {
		at := c.offset(f.Type.Pos())
		name := fmt.Sprintf("mutated%d", at)
		c.names[at] = name + " "
		return []string{name}
	}
	var names []string
	for _, n := range f.Names {
		name := n.Name
		if name == "_" {
			at := c.offset(n.Pos())
			c.names[at] = fmt.Sprintf("mutated%d", at) // before the blank
			name = c.names[at] + "_"
		}
		names = append(names, name)
	}
	return names
}

// withFault returns the text of the copy.
func (c *function) withFault(m Mutant) string {
	from, to := c.offset(c.decl.Pos()), c.offset(c.decl.End())
	name := c.offset(c.decl.Name.Pos())
	return string(c.source[from:name]) + c.name + strings.Replace(string(c.source[name+len(c.decl.Name.Name):to]), m[2], m[3], 1)
}

// program is the test binary of a suite with faults to choose from.
type program struct {
	suite  Suite
	path   string
	faults map[int]bool // the numbers of those in it
}

// build builds the program for the chosen faults. If it does not build, because of one of them, it returns nil: then each fault is
// tested alone, which reports the error. If [All], the tests must pass while the program shows no fault.
func (s Suite) build(t *testing.T, chosen map[int]bool) *program {
	p := &program{suite: s, faults: map[int]bool{}}
	all := switched{files: map[string]*switchedFile{}, packages: map[string]string{}}
	for i, m := range s.Mutants {
		if !chosen[i] {
			continue
		}
		in, err := all.add(m, i)
		if err != nil {
			t.Fatal(err)
		}
		p.faults[i] = in
	}
	dir := t.TempDir()
	list, err := overlay(dir, all.contents())
	if err != nil {
		t.Fatal(err)
	}
	p.path = filepath.Join(dir, "suite.test")
	if out, err := s.output(t.Context(), "", "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", list, "-o", p.path, "."); err != nil {
		t.Logf("each fault gets a program of its own: %v\n%s", err, out)
		return nil
	}
	if All() {
		if out, err := p.run(t, "", "none"); err != nil {
			t.Errorf("the tests fail without a fault: %v\n%s", err, out)
		}
	}
	return p
}

// shows reports whether tests of the program notice a fault.
func (p *program) shows(t *testing.T, tests string, n int) bool {
	if p == nil || !p.faults[n] {
		return false
	}
	stages := []string{tests}
	if tests == "" {
		stages = append(slices.Clone(p.suite.First), tests)
	}
	for _, tests := range stages {
		if out, err := p.run(t, tests, strconv.Itoa(n)); err != nil && strings.Contains(out, failure) {
			return true
		}
	}
	return false
}

// run runs tests, all of the suite if "", while the program shows a fault.
func (p *program) run(t *testing.T, tests, fault string) (string, error) {
	args := []string{"-test.failfast", "-test.paniconexit0", "-test.timeout=10m"}
	for _, a := range p.suite.Args {
		if name, ok := strings.CutPrefix(a, "-"); ok {
			a = "-test." + name
		}
		args = append(args, a)
	}
	if tests != "" {
		args = append(args, "-test.run", tests)
	}
	return p.suite.output(t.Context(), fault, p.path, args...)
}

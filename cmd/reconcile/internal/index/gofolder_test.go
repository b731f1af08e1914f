package index_test

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
)

// TestGoFiles: of a folder of Go files only those are taken in again that have another text, or whose names mean something
// else; and what is kept is what a rebuild makes.
func TestGoFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{
		"go.mod": "module example.com/m\n", "p/a.go": "// Package p is first.\npackage p\n\nfunc A() { B() }\n",
		"p/b.go": "package p\n\nfunc B() {}\n\ntype T struct{}\n", "p/c.go": "package p\n\nfunc (T) Do() { A() }\n",
		"p/c_test.go": "package p_test\n\nimport \"example.com/m/p\"\n\nfunc helper() { p.A() }\n",
	})
	r.refresh().Close()
	for _, step := range []struct {
		name, path, text string // text "" removes the file
		changed          int
	}{
		{"a body", "p/b.go", "package p\n\nfunc B() { println(1) }\n\ntype T struct{}\n", 1},
		{"a function", "p/b.go", "package p\n\nfunc B() { println(1) }\n\nfunc New() {}\n\ntype T struct{}\n", 1},
		{"what others call", "p/b.go", "package p\n\nfunc B(int) { println(1) }\n\nfunc New() {}\n\ntype T struct{}\n", 2},
		{"the comment of the package", "p/a.go", "// Package p is the very first.\npackage p\n\nfunc A() { B() }\n", 2},
		{"an interface", "p/d.go", "package p\n\ntype Doer interface{ Do() }\n", 3},
		{"a circle", "p/e.go", "package p\n\ntype U struct{ V }\n\ntype V struct{ U }\n", 2},
		{"a body beside a circle", "p/b.go", "package p\n\nfunc B(int) {}\n\nfunc New() {}\n\ntype T struct{}\n", 6},
		{"no circle", "p/e.go", "package p\n\ntype U struct{ V }\n\ntype V struct{}\n", 6},
		{"no package", "p/e.go", "just words\n", 2},
		{"a file that went", "p/e.go", "", 1},
		{"another module", "go.mod", "module example.com/n\n", 6},
	} {
		if step.text == "" {
			r.remove(step.path)
		} else {
			r.write(step.path, step.text)
		}
		k, tree := r.keeper()
		x := r.refresh()
		if x.How.Changed != step.changed {
			t.Errorf("%s: %d inputs changed, want %d", step.name, x.How.Changed, step.changed)
		}
		if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound {
			t.Errorf("%s: %+v, %v", step.name, v, err)
		}
		if again := r.refresh(); again.How.Changed+again.How.Gone != 0 {
			t.Errorf("%s: again %d changed, %d went", step.name, again.How.Changed, again.How.Gone)
		}
		r.remove(".reconcile/cache/index-files")
		before := x.Stored.Inputs()
		again := r.refresh()
		if now := again.How.Changed + again.How.Gone; again.Stored.Inputs() != before || now != 0 && !strings.Contains(step.name, "a circle") {
			t.Errorf("%s: %d changed when no more was known of the files", step.name, now)
		}
	}
}

// TestGoFilesOfAnotherState: what is known of the files may be of a later state of the tree than the index.
func TestGoFilesOfAnotherState(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{
		"go.mod": "module example.com/m\n", "p/a.go": "package p\n\nfunc A() {\n\tB()\n}\n", "p/b.go": "package p\n\nfunc B() {\n}\n",
		"p/c.go": "package p\n\nfunc C() {\n\tA()\n}\n",
	})
	r.refresh().Close()
	snapshot := r.read(index.SnapshotPath)
	r.write("p/a.go", "package p\n\nfunc A() {\n\tC()\n}\n")
	r.refresh().Close()
	r.write(index.SnapshotPath, string(snapshot)) // without the delta
	r.remove(index.DeltaPath)
	r.write("p/b.go", "package p\n\nfunc B() {\n\tprintln()\n}\n")
	x := r.refresh()
	k, tree := r.keeper()
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound || x.How.Changed != 2 {
		t.Errorf("%d changed; %+v, %v", x.How.Changed, v, err)
	}
	r.remove("p/b.go")
	x = r.refresh()
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound || x.How.Changed != 1 || x.How.Gone != 1 {
		t.Errorf("%d changed, %d went; %+v, %v", x.How.Changed, x.How.Gone, v, err)
	}
}

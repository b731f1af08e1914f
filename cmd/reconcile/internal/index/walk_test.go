package index_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
)

// Files that vanish, grow, come, and become folders while they are looked at are as they were or as they are, and at the
// next look as they are.
func TestChangeWhileWalking(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	for _, name := range []string{"gone", "grows", "folder", "short"} {
		r.write("sub/"+name+".txt", "old "+name+"\n")
	}
	change := func() {
		r.remove("sub/gone.txt")
		r.remove("go.mod") // it was found: the folder above is looked into before
		r.write("sub/grows.txt", strings.Repeat("new and longer ", 10_000))
		r.remove("sub/folder.txt")
		r.write("sub/folder.txt/inside.txt", "new inside\n")
		if err := os.Truncate(filepath.Join(r.dir, "sub/short.txt"), 0); err != nil {
			t.Error(err)
		}
		r.write("sub/fresh.txt", "new fresh\n")
	}
	// What git leaves out of a folder is asked when it was listed, and its files are read thereafter.
	refresh := func(meanwhile func()) *index.Kept {
		k, tree := r.keeper()
		ignored := k.Ignored
		k.Ignored = func(dir string, rules bool) func(string, bool) bool {
			if dir == "sub" {
				meanwhile()
			}
			return ignored(dir, rules)
		}
		x, err := k.Complete(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x
	}
	x := refresh(change)
	if !has(x, "main.go") || has(x, "sub/gone.txt") || has(x, "sub/folder.txt/inside.txt") || has(x, "sub/fresh.txt") {
		t.Errorf("while files changed: %q", ids(x))
	}
	x = refresh(func() {})
	k, tree := r.keeper()
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound {
		t.Errorf("after files changed: %+v, %v", v, err)
	}
	if !has(x, "sub/folder.txt/inside.txt") || !has(x, "sub/fresh.txt") || !has(x, "sub/grows.txt") || has(x, "sub/gone.txt") {
		t.Errorf("after files changed: %q", ids(x))
	}
}

// A cache of files that is damaged, or none of ours, costs time only.
func TestDamagedFileCache(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	r.refresh()
	r.refresh()
	const p = ".reconcile/cache/index-files"
	whole := string(r.read(p))
	for _, damaged := range []string{"", "short", whole[:len(whole)/2], whole + "more", "\xff\xff\xff\xff\x7f" + whole[5:]} {
		r.write(p, damaged)
		if x := r.refresh(); x.How.Changed+x.How.Gone != 0 || x.How.Rebuilt != "" {
			t.Errorf("with a cache of %d bytes: %+v", len(damaged), x.How)
		}
		if string(r.read(p)) != whole {
			t.Errorf("a cache of %d bytes was not mended", len(damaged))
		}
	}
	before, err := r.store.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	r.refresh()
	if after, err := r.store.Lstat(p); err != nil || after != before {
		t.Errorf("the cache was written though nothing changed: %v", err)
	}
}

// Few changes are kept beside the snapshot, many make a new one: of many inputs, or of one that comes to much.
func TestWhenMuchChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("indexes thousands of nodes, several times")
	}
	t.Parallel()
	files := map[string]string{"go.mod": "module example.com/m\n"}
	const inputs = 100
	for i := range inputs - 1 {
		files[fmt.Sprintf("notes/%d.txt", i)] = "a note\n"
	}
	r := newRig(t, files)
	r.refresh()
	edit := func(n, turn int) {
		for i := range n {
			r.write(fmt.Sprintf("notes/%d.txt", i), fmt.Sprintf("note %d of turn %d\n", i, turn))
		}
	}
	const most = inputs/4 + 64
	edit(most, 1)
	if x := r.refresh(); x.How.Rebuilt != "" || x.How.Changed != most || x.Delta() == nil {
		t.Errorf("%d of %d inputs changed: %+v", most, inputs, x.How)
	}
	edit(most+1, 2)
	if x := r.refresh(); x.How.Rebuilt != "much has changed" || x.Delta() != nil {
		t.Errorf("%d of %d inputs changed: %+v", most+1, inputs, x.How)
	}
	sections := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "# Section %d\n\nSays %d.\n\n", i, i*i)
		}
		return b.String()
	}
	r.write("docs/large.md", sections(1000))
	if x := r.refresh(); x.How.Rebuilt != "" || x.Changed() < 1000 {
		t.Errorf("a thousand nodes changed: %+v", x.How)
	}
	r.write("docs/large.md", sections(5000))
	x := r.refresh()
	if x.How.Rebuilt != "the delta has become large" || x.Delta() != nil {
		t.Errorf("five thousand nodes changed: %+v", x.How)
	}
	made := r.read(index.SnapshotPath)
	k, tree := r.keeper()
	again, err := k.Rebuild(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !bytes.Equal(made, r.read(index.SnapshotPath)) {
		t.Error("a rebuild comes to other bytes")
	}
}

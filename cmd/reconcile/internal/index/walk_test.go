package index_test

import (
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
	before, err := r.store.LookAt(p)
	if err != nil {
		t.Fatal(err)
	}
	r.refresh()
	if after, err := r.store.LookAt(p); err != nil || after != before {
		t.Errorf("the cache was written though nothing changed: %v", err)
	}
}

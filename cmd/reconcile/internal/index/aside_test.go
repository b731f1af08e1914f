package index_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
)

// wholes are a tree's snapshots, made in all ways that there are.
func (r *rig) wholes(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	k, tree := r.keeper()
	x, err := k.Complete(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if x.Finish != nil || x.How.Rebuilt != "there was none" {
		t.Errorf("built: %+v, and something is left to finish: %v", x.How, x.Finish != nil)
	}
	out["complete"] = r.read(index.SnapshotPath)
	again, err := k.Complete(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.How.Rebuilt != "" || again.How.Changed > 0 {
		t.Errorf("looked at again: %+v", again.How)
	}
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound {
		t.Errorf("verified: %+v %v", v, err)
	}
	r.remove(index.SnapshotPath)
	words, err := k.Refresh(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	words.Close()
	for range 3 {
		runtime.GC() // the texts are needed until it is finished, and finished again
		whole, err := words.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		whole.Close()
		out["finished"] = r.read(index.SnapshotPath)
	}
	whole, err := k.Rebuild(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	whole.Close()
	out["rebuilt"] = r.read(index.SnapshotPath)
	return out
}

// Texts that are put aside come back, whichever way an index is built, and nothing is left of where they were.
func TestTextsAside(t *testing.T) {
	t.Parallel()
	files := map[string]string{"go.mod": "module x\n", "empty.txt": "\n"}
	for i := range 40 {
		files[fmt.Sprintf("p%d/a.go", i)] = fmt.Sprintf("package p%d\n\n// F%d finds number %d.\nfunc F%d() {}\n", i, i, i, i)
		files[fmt.Sprintf("docs/%d.md", i)] = fmt.Sprintf("# Page %d\n\n%s\n", i, strings.Repeat("Words of it. ", i))
	}
	r := newRig(t, files)
	all := r.wholes(t)
	for how, b := range all {
		if !bytes.Equal(b, all["complete"]) {
			t.Errorf("%s has other bytes", how)
		}
	}
	left, err := os.ReadDir(filepath.Join(r.dir, ".reconcile", "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

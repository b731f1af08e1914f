package index_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
)

// An index that follows thousands of changes in one process grows neither in memory nor in open files and maps. It is not
// parallel: others would open files meanwhile.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes in thousands of changes")
	}
	const files, changes, batch = 200, 3000, 40
	start := map[string]string{"go.mod": "module example.com/m\n"}
	for i := range files {
		start[noteOf(i)] = noteText(i, 0)
	}
	r := newRig(t, start)
	// A round edits, deletes and adds in turn; what was deleted is there again after the next edit.
	round := func(turn int) {
		for i := range batch {
			n := (turn*batch + i) % files
			switch (turn + i) % 3 {
			case 0:
				r.write(noteOf(n), noteText(n, turn))
			case 1:
				if err := os.Remove(r.dir + "/" + noteOf(n)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			case 2:
				r.write(fmt.Sprintf("added/%d.md", n), noteText(n, turn))
			}
		}
		k, tree := r.keeper()
		x, err := k.Complete(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		if x.How.Changed+x.How.Gone < batch/2 {
			t.Errorf("turn %d: %+v", turn, x.How)
		}
		x.Close()
	}
	const warm = changes / batch / 5
	for turn := range warm {
		round(turn)
	}
	before := held()
	for turn := warm; turn < changes/batch; turn++ {
		round(turn)
	}
	after := held()
	if after.files > before.files || after.maps > before.maps {
		t.Errorf("open files and maps were %d and %d, and are %d and %d", before.files, before.maps, after.files, after.maps)
	}
	if after.heap > before.heap+4<<20 {
		t.Errorf("the heap had %d bytes in use, and has %d", before.heap, after.heap)
	}
	k, tree := r.keeper()
	x := r.refresh()
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound {
		t.Errorf("after %d changes: %+v, %v", changes, v, err)
	}
}

func noteOf(i int) string { return fmt.Sprintf("notes/%d/%d.md", i%10, i) }

func noteText(i, turn int) string {
	return fmt.Sprintf("# Note %d\n\nOf turn %d, see [another](%d.md).\n\n%s\n", i, turn, i/2, strings.Repeat("word ", i%50))
}

// holding is what a process holds.
type holding struct {
	heap        uint64 // bytes in use
	files, maps int    // maps of snapshots; 0 where the system does not tell
}

func held() (h holding) {
	runtime.GC()
	runtime.GC() // what was cleaned up by the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.heap = m.HeapAlloc
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.files = len(fds)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		h.maps = strings.Count(string(maps), index.SnapshotPath) + strings.Count(string(maps), index.DeltaPath) +
			strings.Count(string(maps), "/.reconcile/")
	}
	return h
}

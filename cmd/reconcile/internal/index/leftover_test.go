package index_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/state/proc"
)

// TestKilledBuildLeavesNothing: what a build that was killed was writing is removed by the next one, and what another
// process writes is not.
func TestKilledBuildLeavesNothing(t *testing.T) {
	r := newRig(t, map[string]string{"a.txt": "quokka\n"})
	self := proc.Self()
	dead := fmt.Sprintf(".reconcile/tmp/%s-%d-%d-1.tmp", self.Tag, self.PID, self.Start+1)
	alive := fmt.Sprintf(".reconcile/tmp/%s-%d-%d-99999.tmp", self.Tag, self.PID, self.Start)
	r.write(dead, "half a snapshot")
	r.write(alive, "half a snapshot")
	k, tree := r.keeper()
	x, err := k.Complete(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	if _, err := os.Stat(filepath.Join(r.dir, dead)); err == nil {
		t.Error("what a killed build was writing is still there")
	}
	if _, err := os.Stat(filepath.Join(r.dir, alive)); err != nil {
		t.Error(err)
	}
}

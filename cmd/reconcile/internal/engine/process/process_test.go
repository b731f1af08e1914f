package process

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestGrowthIsBounded: with much in use the percentage falls to what lets the heap grow by maxGrowth, and does not rise again.
func TestGrowthIsBounded(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	TuneGC(func(string) string { return "" }, GCLatency)
	collect := func(least uint64) uint64 {
		for range 20 {
			runtime.GC()
			runtime.Gosched() // the finalizer runs beside
			if now := measured("/gc/gogc:percent"); now <= least {
				return now
			}
		}
		return measured("/gc/gogc:percent")
	}
	if got := collect(0); got != uint64(GCLatency) {
		t.Errorf("with little in use: %d percent, want %d", got, GCLatency)
	}
	used := make([]byte, 40<<20)
	if got := collect(160); got < 100 || got > 160 {
		t.Errorf("with 40 MiB in use: %d percent, want about 150", got)
	}
	if got := boundedPercent(500 << 20); got != uint64(GCDefault) {
		t.Errorf("with 500 MiB in use: %d percent, want %d", got, GCDefault)
	}
	runtime.KeepAlive(used)
	used = nil
	if got := collect(0); got > 160 {
		t.Errorf("with little in use again: %d percent", got)
	}
	TuneGC(func(string) string { return "50" }, GCLatency)
	if got := collect(0); got > 160 {
		t.Errorf("GOGC was overridden: %d percent", got)
	}
}

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		live, floor, least uint64
		want               int
	}{{50, 200, 20, 300}, {160, 200, 20, 25}, {190, 200, 20, 20}, {400, 200, 20, 20}, {200, 200, 60, 60}} {
		if got := growthOf(c.live, c.floor, c.least); got != c.want {
			t.Errorf("a heap of %d with the floor %d grows by %d %%, not %d", c.live, c.floor, got, c.want)
		}
	}
}

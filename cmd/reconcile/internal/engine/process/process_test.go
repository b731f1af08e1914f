package process

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollector: the percentage follows the live heap after each collection.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	c := NewCollector(func(string) string { return "" })
	c.Aim(GCLatency)
	used := make([]byte, 40<<20)
	for { // until the finalizer, which another goroutine runs, has set it
		runtime.GC()
		runtime.Gosched()
		if got := debug.SetGCPercent(300); got >= 100 && got <= 160 {
			break
		} else if got != 300 {
			t.Fatalf("with 40 MiB in use: %d percent, want about 150", got)
		}
	}
	runtime.KeepAlive(used)
	if NewCollector(func(string) string { return "50" }) != nil {
		t.Error("GOGC is overridden")
	}
	(*Collector)(nil).Load(1000)
}

func TestPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		is   *Collector
		live uint64
		want uint64
	}{
		{&Collector{}, 50 * mib, 100},
		{&Collector{goal: GCBatch}, 50 * mib, 1600},
		{&Collector{goal: GCLong}, 100 * mib, 100},
		{&Collector{goal: GCLong}, 256 * mib, 75},
		{&Collector{goal: GCLong}, 1024 * mib, 50},
		{&Collector{goal: GCLatency}, 1 * mib, 300},
		{&Collector{goal: GCLatency}, 40 * mib, 160},
		{&Collector{goal: GCLatency}, 500 * mib, 100},
		{&Collector{goal: GCLatency, files: 10_000}, 12_500_000, 100},
		{&Collector{files: 10_000}, 20_000_000, 25},
		{&Collector{goal: GCBatch, files: 100_000}, 62_500_000, 300},
		{&Collector{files: 100_000}, 230_000_000, 20},
		{&Collector{files: 100_000}, 400_000_000, 20},
	} {
		if got := c.is.percent(c.live); got != c.want {
			t.Errorf("goal %d, %d files, %d bytes live: %d percent, want %d", c.is.goal, c.is.files, c.live, got, c.want)
		}
	}
}

package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
)

// GCGoal is what the garbage collector is tuned for.
type GCGoal int

const (
	// GCLatency trades some memory for time, for a command that ends soon on a tree that is not large: the collector
	// takes a tenth of the time of a DAG of quick commands otherwise.
	GCLatency GCGoal = memstore.HeapGrowth
	// GCBatch is GCLatency for a command that looks at thousands of files and ends: none of what it needs for that is
	// collected. Set GCDefault before work that takes long and much memory.
	GCBatch GCGoal = 1600
	// GCDefault is Go's own pace, or the present one if that collects more often.
	GCDefault GCGoal = 100
)

// TuneGC sets how far the heap may grow before garbage is collected, unless the user has, with GOGC.
func TuneGC(getenv func(string) string, goal GCGoal) {
	switch {
	case getenv("GOGC") != "":
	case goal == GCDefault:
		debug.SetGCPercent(min(debug.SetGCPercent(int(goal)), int(goal)))
	default:
		debug.SetGCPercent(int(goal))
	}
}

// SaveMemory trades some time for memory, the more the larger the tree is: with Go's default the heap may grow to twice
// what a tree takes, which with 50,000 objects is more than 300 MB. Until the heap has the size that such a tree takes,
// nothing is collected, since most of what is allocated on the way stays.
func SaveMemory(getenv func(string) string, files int, large bool) {
	then := 60
	if large {
		then = 25
	}
	if getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	const least, of = 4 << 20, 3 << 9 // the heap that Go begins with, and what a file takes
	first := uint64(files) * of * 100 / max(live[0].Value.Uint64(), least)
	debug.SetGCPercent(max(int(first)-100, then))
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { debug.SetGCPercent(then) })
}
